"""Fakes that ship: a clock, simulated models and worlds, a stand-in endpoint. For whet's tests and its users'.

Nothing outside tests and the command line imports this room.
"""

from whet.testing.clock import FakeClock, settle
from whet.testing.simulation import HARMFUL, SimulatedWorld, coach, play_both, rule_of, student

__all__ = ["HARMFUL", "FakeClock", "SimulatedWorld", "coach", "play_both", "rule_of", "settle", "student"]
