"""A librarian who knows the tools but not the house, and a coach who reads off failed tries which rule was broken.

The librarian does what the rules in its skill say, with their numbers, and nothing that they do not say: without
a rule for late returns it charges nothing, and it lends everything for 30 days.
"""

import json
import re
from collections.abc import Generator
from datetime import date, timedelta
from typing import Any

from whet.core import Finish, ModelReply, ModelRequest, Speaker, ToolCall, Usage

Script = Generator[tuple[str, dict[str, Any]], Any, str]
"""Yields calls, is sent what they returned, and ends with the answer."""


def librarian(request: ModelRequest) -> ModelReply:
    """Goes through its script anew each time, with the results of the calls that were made so far."""
    skill = "\n".join(message.text for message in request.messages if message.speaker is Speaker.SYSTEM)
    told = next(message.text for message in request.messages if message.speaker is Speaker.USER)
    results = [message.text for message in request.messages if message.speaker is Speaker.TOOL]
    usage = Usage(len(told.split()) + len(skill.split()), 10)
    script = work(told.splitlines()[-1], dict(re.findall(r"^- ([a-z-]+): (.+)$", skill, re.MULTILINE)))
    try:
        tool, arguments = next(script)
        for result in results:
            tool, arguments = script.send(result)
    except StopIteration as end:
        return ModelReply(str(end.value), usage=usage)
    call = ToolCall(f"call-{len(results)}", tool, json.dumps(arguments))
    return ModelReply("", (call,), Finish.TOOL_CALLS, usage)


def work(task: str, rules: dict[str, str]) -> Script:
    if task.startswith("Which members"):
        return (yield from overdue_cards(int(re.findall(r"more than (\d+) days", task)[0])))
    name, title = re.findall(r"^(\w+ \w+) .*'(.+)'", task)[0]
    (member, *_) = json.loads((yield "find_members", {"name": name}))
    if "brings back" in task:
        return (yield from take_back(member["id"], title, rules))
    if "keep" in task:
        return (yield from renew(member["id"], title, rules))
    return (yield from lend(member["id"], title, rules))


def lend(member: int, title: str, rules: dict[str, str]) -> Script:
    known = json.loads((yield "get_member", {"member_id": member}))
    debt = re.search(r"owes (\d+)\.\d\d EUR or more", rules.get("debts", ""))
    if debt and known["owed_cents"] >= 100 * int(debt[1]):
        return "Answer: refused, debts"
    most = re.search(r"at most (\d+) things", rules.get("loan-limit", ""))
    if most and known["at_home"] >= int(most[1]):
        return "Answer: refused, loan-limit"
    (found, *_) = json.loads((yield "find_titles", {"words": title}))
    state = json.loads((yield "get_title", {"title_id": found["id"]}))
    if state["free"] < 1:
        if "on hold" in rules.get("all-lent", ""):
            yield "place_hold", {"member_id": member, "title_id": found["id"]}
        return "Every copy is out."
    yield "lend", {"member_id": member, "title_id": found["id"], "days": period(found["kind"], rules)}
    return "Done."


def renew(member: int, title: str, rules: dict[str, str]) -> Script:
    loan = yield from loan_of(member, title)
    title_state = json.loads((yield "get_title", {"title_id": loan["title_id"]}))
    if "waits for" in rules.get("waiting", "") and title_state["waiting"]:
        return "Answer: refused, waiting"
    yield "renew", {"loan_id": loan["loan_id"], "days": period(loan["kind"], rules)}
    return "Done."


def take_back(member: int, title: str, rules: dict[str, str]) -> Script:
    loan = yield from loan_of(member, title)
    today = date.fromisoformat((yield "get_time", {})[:10])
    yield "take_back", {"loan_id": loan["loan_id"]}
    price = re.search(r"costs (\d+) cents for each day past the due date, at most (\d+)\.", rules.get("overdue", ""))
    late = (today - date.fromisoformat(loan["due"])).days
    if price and late > 0:
        cents = min(late * int(price[1]), 100 * int(price[2]))
        yield "charge", {"member_id": member, "cents": cents, "reason": "overdue"}
    return "Done."


def overdue_cards(days: int) -> Script:
    today = date.fromisoformat((yield "get_time", {})[:10])
    loans = json.loads((yield "list_overdue", {}))
    late = sorted({loan["card"] for loan in loans if loan["due"] < str(today - timedelta(days=days))})
    return f"Answer: {', '.join(late)}"


def loan_of(member: int, title: str) -> Generator[tuple[str, dict[str, Any]], Any, dict[str, Any]]:
    loans = json.loads((yield "list_loans", {"member_id": member}))
    return next(loan for loan in loans if loan["title"] == title)


def period(kind: str, rules: dict[str, str]) -> int:
    """As the rule has it: "Books are lent for 28 days, games for 14 and films for 7"."""
    found = re.search(rf"\b{kind}s (?:are lent )?for (\d+)", rules.get("loan-period", ""), re.IGNORECASE)
    return int(found[1]) if found else 30


def coach(request: ModelRequest) -> str:
    """Proposes the house rules that feedback names and the skill does not have yet, two at a time."""
    text = request.messages[0].text
    if '"meta_skill_content"' in text:
        return json.dumps({"meta_skill_content": "House rules, word for word, are what helps."})
    if '"slow_update_content"' in text:
        return json.dumps({"slow_update_content": ""})
    skill = text.partition("## The skill document\n")[2].partition("\n## ")[0]
    named = re.findall(r"house rule ([a-z-]+): ([^;\n]+)", text)
    missing = {name: rule for name, rule in named if f"- {name}: " not in skill}
    edits = [{"op": "append", "target": "", "content": f"- {name}: {rule}"} for name, rule in list(missing.items())[:2]]
    if not named:
        edits = [json.loads(line) for line in re.findall(r"^\[\d+\] (\{.*\})$", text, re.MULTILINE)]
        edits = list(
            {edit["content"]: {key: edit[key] for key in ("op", "target", "content")} for edit in edits}.values()
        )
    return json.dumps({"patch": {"reasoning": "these rules were broken", "edits": edits}, "edits": edits})
