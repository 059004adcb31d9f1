"""A player that follows examples: it repeats the strategy of one that its skill shows, else it guesses."""

import json
import re
from random import Random

from whet.core import ModelRequest, Speaker


def player(request: ModelRequest) -> str:
    head = request.messages[0]
    shown = re.findall(r"Answer: (\{.*\})", head.text) if head.speaker is Speaker.SYSTEM else []
    chance = Random(request.seed)
    if shown:
        return chance.choice(shown)
    aggression = round(chance.random(), 2)
    return json.dumps(
        {
            "aggression": aggression,
            "defense": round(min(1.0, 1.4 - aggression) * chance.random(), 2),
            "path_bias": round(chance.random(), 2),
        }
    )
