"""An agent for the pack that knows its tools but no house rule, and a coach that reads the verdicts' feedback.

The clerk works through the real tools, a call a turn. It goes a right way only if its skill holds every rule that the
task is about; without one it does what seems right, and something is wrong with it. What it learns of one task it can
use in others that are about the same rules.
"""

from __future__ import annotations

import json
import re

from whet.core import ModelReply, ModelRequest, Speaker, Split, ToolCall
from whet.testing import coach as any_coach
from whet.worlds.database import ScenarioSettings
from whet.worlds.pack import pack

_RULE = re.compile(r"house rule ([a-z-]+): ([^;\n]+)")
_WORLD = pack(ScenarioSettings())
_TASKS = {str(task.inputs["text"]): task for split in Split for task in _WORLD.tasks(split)}
_RULES = {draft.text: draft.rules for drawn in _WORLD.drawn for draft in drawn.drafts}


def clerk(request: ModelRequest) -> ModelReply:
    skill = "\n".join(message.text for message in request.messages if message.speaker is Speaker.SYSTEM)
    told = next(message.text for message in request.messages if message.speaker is Speaker.USER)
    text = told.rpartition("\n\n")[2]
    knows = all(f"- {rule}:" in skill for rule in _RULES[text])
    way = _WORLD.known_good(_TASKS[text]) if knows else _WORLD.damaged(_TASKS[text])[0]
    turn = sum(message.speaker is Speaker.ASSISTANT for message in request.messages)
    if turn < len(way.acts):
        act = way.acts[turn]
        return ModelReply("", tool_calls=(ToolCall(f"call-{turn}", act.tool, json.dumps(act.arguments)),))
    return ModelReply(way.answer or "Done.")


def coach(request: ModelRequest) -> str:
    """Proposes the rules that verdicts name and the skill lacks; anything else it answers as a coach does."""
    text = request.messages[0].text
    skill, _, tries = text.partition("## Failed tries")
    if not tries:
        return any_coach()(request)
    rules = [f"- {name}: {said.strip()}" for name, said in _RULE.findall(tries) if f"- {name}:" not in skill]
    edits = [{"op": "append", "target": "", "content": line} for line in dict.fromkeys(rules)]
    return json.dumps({"patch": {"reasoning": "rules are missing", "edits": edits}, "failure_summary": []})
