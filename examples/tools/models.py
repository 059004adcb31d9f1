"""An agent that pays with the small coins it knows, until its skill tells it to begin with the large ones."""

import json
import re

from whet.core import Finish, ModelReply, ModelRequest, Speaker, ToolCall, Usage

RULE = "Begin with the largest coins."


def agent(request: ModelRequest) -> ModelReply:
    skill = request.messages[0].text if request.messages[0].speaker is Speaker.SYSTEM else ""
    told = next(message.text for message in request.messages if message.speaker is Speaker.USER)
    wanted = int(re.findall(r"exactly (\d+)", told)[0])
    held = sum(int(n) for n in re.findall(r"holds (\d+)\.", request.messages[-1].text))
    usage = Usage(len(told.split()), 5)
    if held == wanted:
        return ModelReply("Done.", usage=usage)
    coins = (20, 5, 1) if RULE in skill else (1,)
    coin = next(coin for coin in coins if coin <= wanted - held)
    arguments = json.dumps({"coin": coin, "count": (wanted - held) // coin})
    return ModelReply("", (ToolCall(f"call-{held}", "put", arguments),), Finish.TOOL_CALLS, usage)


def coach(request: ModelRequest) -> str:
    text = request.messages[0].text
    if '"meta_skill_content"' in text:
        return json.dumps({"meta_skill_content": "Rules about the order of coins help."})
    if '"slow_update_content"' in text:
        return json.dumps({"slow_update_content": ""})
    known = RULE in text or "## Failed tries" not in text
    edits = [] if known else [{"op": "append", "target": "", "content": RULE}]
    return json.dumps({"patch": {"reasoning": "too many small coins", "edits": edits}, "edits": edits})
