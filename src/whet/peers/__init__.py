"""Other trainers on the same tasks, the same models and the same budget, for comparison.

A peer lives in a Python of its own and is driven by a script from `drivers`. It plays nothing and calls no model by
itself: it asks the bridge, which plays by whet's own engine and calls the optimizer's model, on a ledger of the peer's
own. This room knows nothing of how a peer learns.
"""

from whet.peers.comparing import Compared, Comparison, compare_trainers
from whet.peers.running import PEERS, Peer, find_peers

__all__ = ["PEERS", "Compared", "Comparison", "Peer", "compare_trainers", "find_peers"]
