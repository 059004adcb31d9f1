"""Makes worlds: from a theme to scenarios with tools, data and verifiers, in the format of AgentWorldModel.

A model writes each part, and each part is tried before the next is asked for; what is wrong goes back to the model in
words. This room knows how worlds are made and when they are sound. It knows nothing of how they are played later, and
runs no line that a model wrote outside the sandbox.
"""

from whet.making.making import Made, MadeScenario, Maker, Order, make_worlds, open_maker
from whet.making.nearness import Near, nearest_of
from whet.making.stages import LeftOut

__all__ = ["LeftOut", "Made", "MadeScenario", "Maker", "Near", "Order", "make_worlds", "nearest_of", "open_maker"]
