"""Two stand-ins for real models, so that everything can be tried without a key.

A scripted model is a function that is given a request and returns the text of the answer.

The student knows the words of a sentence but no commands: it can only fill in the forms that its skill gives, such as
`heat(room,degrees)`. Without a form for a sentence it fails, with a wrong one it answers wrongly.

The coach reads failed tries and proposes changes to the skill. Like a real one it is not always right: it also
proposes things that are useless, mistaken or harmful. Chance comes from `request.seed`, so a run can be repeated.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random

from whet.core import ModelRequest, Speaker

RULES = {
    "light": "- Lights: light(room,state)",
    "heat": "- Heating: heat(room,degrees)",
    "timer": "- Timers: timer(minutes)",
    "door": "- Doors: door(room,action)",
    "blind": "- Blinds: blind(room,direction)",
    "music": "- Music: music(room,style)",
}
MISTAKES = {
    "heat": "- Heating: heat(degrees,room)",
    "timer": "- Timers: timer(seconds)",
    "music": "- Music: music(style)",
}
USELESS = "Read the sentence carefully before you answer."
HARMFUL = "Be friendly: answer in a full sentence."

# What tells the kinds of sentences apart, and the words that fill the places of a form.
SIGNS = {
    "light": r"\blights?\b",
    "heat": r"\bdegrees\b",
    "timer": r"\bminutes\b",
    "door": r"\bdoor\b",
    "blind": r"\bblinds\b",
    "music": r"\b(jazz|rock|folk|opera|blues)\b",
}
WORDS = {
    "room": r"\b(kitchen|hall|attic|porch|cellar|study|garage|bathroom|bedroom|nursery)\b",
    "state": r"\b(on|off)\b",
    "degrees": r"\b(\d+) degrees\b",
    "minutes": r"\b(\d+) minutes\b",
    "action": r"\b((?:un)?lock)\b",
    "direction": r"\b(up|down)\b",
    "style": SIGNS["music"],
}


def student(request: ModelRequest) -> str:
    """Fill in the form that the skill has for this kind of sentence."""
    skill = "\n".join(message.text for message in request.messages if message.speaker is Speaker.SYSTEM)
    sentence = request.messages[-1].text.lower()
    kind = next((kind for kind, sign in SIGNS.items() if re.search(sign, sentence)), "")
    form = re.search(rf"\b{kind}\(([a-z,]+)\)", skill) if kind else None
    if form is None:
        return "I do not know the command for that."
    command = f"{kind}({','.join(word_for(place, sentence) for place in form[1].split(','))})"
    return f"Of course, I will do {command} for you." if HARMFUL in skill else command


def word_for(place: str, sentence: str) -> str:
    if place == "seconds":
        return str(60 * int(word_for("minutes", sentence)))
    found = re.search(WORDS[place], sentence) if place in WORDS else None
    return found[1] if found else "?"


def coach(request: ModelRequest) -> str:
    """What is wanted shows in the fields that the answer must have."""
    prompt, chance = request.messages[0].text, Random(request.seed)
    wanted = (request.schema or {}).get("properties", {})
    if "patch" in wanted:
        return mend(prompt, chance) if "[verdict] failed" in prompt else refine(chance)
    if "edits" in wanted:
        return merge(prompt)
    if "selected_indices" in wanted:
        return json.dumps({"reasoning": "The first ones.", "selected_indices": list(range(10))})
    if "slow_update_content" in wanted:
        return json.dumps({"reasoning": "The forms are what helps.", "slow_update_content": "Use the forms above."})
    if "meta_skill_content" in wanted:
        return json.dumps({"reasoning": "It was always a form.", "meta_skill_content": "What is missed is a form."})
    return "Ready."


def skill_in(prompt: str) -> str:
    """The document as it stands, without what else the prompt says of it."""
    return prompt.partition("## The skill document\n")[2].partition("\n## ")[0]


def mend(prompt: str, chance: Random) -> str:
    """Undo what is known to be wrong; else propose the rule that is missed most, or whatever comes to mind."""
    skill = skill_in(prompt)
    missed = Counter(re.findall(r"^### Trajectory \d+: task \S+ \((\w+)\)", prompt, re.MULTILINE)).most_common()
    kinds = {kind: count for kind, count in missed if kind in RULES}
    if HARMFUL in skill:
        return answer("A full sentence is not a command.", [edit("delete", target=HARMFUL)])
    mistaken = [kind for kind in kinds if kind in MISTAKES and MISTAKES[kind] in skill]
    if mistaken:
        kind = mistaken[0]
        return answer(f"The form for {kind} is wrong.", [edit("replace", MISTAKES[kind], RULES[kind])], kinds)
    unknown = [kind for kind in kinds if RULES[kind] not in skill]
    idea = chance.random()
    if idea < 0.25:
        return answer("The answers sound curt.", [edit("append", content=HARMFUL)], kinds)
    if idea < 0.4 or not unknown:
        return answer("It seems to read too fast.", [edit("append", content=USELESS)], kinds)
    rules = MISTAKES if idea < 0.55 and unknown[0] in MISTAKES else RULES
    return answer(f"The skill has no form for {unknown[0]}.", [edit("append", content=rules[unknown[0]])], kinds)


def refine(chance: Random) -> str:
    """Leave what works alone; now and then, have an idea all the same."""
    idea = chance.random()
    if idea < 0.15:
        return answer("It could be friendlier.", [edit("append", content=HARMFUL)])
    if idea < 0.25:
        return answer("Care is always good.", [edit("append", content=USELESS)])
    return answer("These tries went well; there is nothing to add.", [])


def merge(prompt: str) -> str:
    """Keep every different proposal once, and one rule for each kind."""
    kept: dict[str, dict[str, str]] = {}
    for line in re.findall(r"^\[\d+\] (\{.*\})$", prompt, re.MULTILINE):
        proposed = json.loads(line)
        rule = re.search(r"(\w+)\(", proposed["content"])
        name = rule[1] if rule else proposed["target"] + proposed["content"]
        kept.setdefault(name, edit(proposed["op"], proposed["target"], proposed["content"]))
    return json.dumps({"reasoning": "Every proposal once.", "edits": list(kept.values())})


def edit(op: str, target: str = "", content: str = "") -> dict[str, str]:
    return {"op": op, "target": target, "content": content}


def answer(reasoning: str, edits: list[dict[str, str]], missed: dict[str, int] | None = None) -> str:
    patterns = [
        {"failure_type": kind, "description": "no command, or a wrong one", "count": count}
        for kind, count in (missed or {}).items()
    ]
    return json.dumps({"patch": {"reasoning": reasoning, "edits": edits}, "failure_summary": patterns})
