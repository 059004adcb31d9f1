"""The pack: six workplaces over SQLite that come with whet, ten kinds of task each, and as many draws as are wanted.

It is what an agent is trained on where nothing else is at hand. Each scenario is one module: its schema, its data by
seed, its tools, its tasks and the house rules that run through them. This room knows nothing of how a try is judged.
"""

from whet.worlds.pack.scenarios import SCENARIOS, pack

__all__ = ["SCENARIOS", "pack"]
