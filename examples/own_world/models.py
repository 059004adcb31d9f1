"""A student that knows a way of writing prices once its skill says so, and a coach that finds out what to say."""

import json
import re

from whet.core import ModelRequest

RULE = "Write prices as CROWNS crowns CENTS."


def student(request: ModelRequest) -> str:
    told = request.messages[-1].text
    skill = request.messages[0].text if len(request.messages) > 1 else ""
    crowns, cents = re.findall(r"(\d+)\.(\d\d)", told)[0]
    return f"{crowns} crowns {int(cents)}" if RULE in skill else f"{crowns}.{cents}"


def coach(request: ModelRequest) -> str:
    text = request.messages[0].text
    if '"meta_skill_content"' in text:
        return json.dumps({"meta_skill_content": "One rule about the form was enough."})
    if '"slow_update_content"' in text:
        return json.dumps({"slow_update_content": ""})
    known = RULE in text or "## Failed tries" not in text
    edits = [] if known else [{"op": "append", "target": "", "content": RULE}]
    return json.dumps({"patch": {"reasoning": "the right answers share a form", "edits": edits}, "edits": edits})
