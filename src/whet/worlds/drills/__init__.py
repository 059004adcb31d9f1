"""Drills: small jobs with one right answer, drawn without end by seed, that even a small language model can learn.

Each turns a line of plain English into a form that no model knows beforehand, and checks it to the letter. Test and
confirm ask with other words than train and selection, so knowing answers by heart does not pass.
"""

from whet.worlds.drills.drill import Drill, DrillSettings, Item, Words

__all__ = ["Drill", "DrillSettings", "Item", "Words"]
