"""Plays episodes: a policy against a task, in a session of a world, with every answer kept.

This room knows nothing of learning, gates or splits; it turns (policy, task, sample) into a trajectory.
"""

from whet.rollout.engine import TRIES, Engine
from whet.rollout.episode import Episode
from whet.rollout.render import Rendered, render, skill_text, without_images

__all__ = ["TRIES", "Engine", "Episode", "Rendered", "render", "skill_text", "without_images"]
