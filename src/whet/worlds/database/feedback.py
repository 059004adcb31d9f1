"""What is said of a finished try: the verdict, with reasons that help a learner and do not give the key away. Pure.

What an agent did too much is shown as it is, for it was its own doing. Of what is missing only the table is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from whet.core import Json, Verdict
from whet.worlds.database.checking import judged
from whet.worlds.database.difference import Difference, shown_row
from whet.worlds.database.rewards import FACT, reward_type
from whet.worlds.database.scenario import Draft

_VERBS = {"insert": "a new row in", "update": "a change in", "delete": "a removal from"}
_SHOWN = 3


def verdict_of(draft: Draft, rules: Mapping[str, str], found: Difference, answer: str, malformed: int = 0) -> Verdict:
    judgement = judged(msgspec.to_builtins(draft.check), as_changes(found), answer)
    extra = len(judgement["extra"]) + len(found.schema)
    passed = judgement["passed"] and not found.schema
    soft = judgement["soft"] if passed or not judgement["passed"] else 0.0
    facts: dict[str, Json] = {
        "missing": len(judgement["missing"]),
        "extra": extra,
        "answer_right": judgement["answer_right"],
        "malformed_calls": malformed,
        "difference": found.text(),
    }
    feedback = "" if passed else _feedback(draft, rules, judgement, bool(found), answer)
    verdict = Verdict(passed, soft, feedback, facts)
    kind = reward_type(verdict, malformed=malformed)
    return msgspec.structs.replace(verdict, facts={**facts, FACT: str(kind)})


def as_changes(found: Difference) -> list[dict[str, Any]]:
    """A difference as the plain values that checks look at."""
    return list(_changes(found))


def _changes(found: Difference) -> Iterator[dict[str, Any]]:
    for table in found.tables:
        name = table.table
        yield from ({"kind": "insert", "table": name, "before": None, "after": row} for row in table.inserted)
        yield from ({"kind": "delete", "table": name, "before": row, "after": None} for row in table.deleted)
        for row in table.changed:
            yield {"kind": "update", "table": name, "before": row.before, "after": row.after}


def _feedback(draft: Draft, rules: Mapping[str, str], judgement: dict[str, Any], changed: bool, answer: str) -> str:
    missing, extra = judgement["missing"], judgement["extra"]
    wants_refusal = draft.check.answer is not None and draft.check.answer.kind == "refused"
    parts: list[str] = []
    if missing:
        parts.append(f"missing is {_counted(missing)}")
    if extra:
        shown = [_shown(change) for change in extra[:_SHOWN]]
        more = f" and {len(extra) - _SHOWN} more" if len(extra) > _SHOWN else ""
        parts.append(f"not asked for was {'; '.join(shown)}{more}")
    if not judgement["answer_right"]:
        parts.append(
            "a house rule forbids it, and the answer does not name that rule"
            if wants_refusal
            else "the answer is not right"
        )
    parts += [f"house rule {name}: {rules[name].rstrip('.')}" for name in draft.rules]
    return f"{_reason(judgement, wants_refusal, changed, answer)}: {'; '.join(parts)}"


def _reason(judgement: dict[str, Any], wants_refusal: bool, changed: bool, answer: str) -> str:
    if wants_refusal and changed:
        return "broke a house rule"
    if judgement["missing"] and judgement["extra"]:
        return "wrong change"
    if judgement["missing"]:
        return "incomplete" if changed else "nothing was changed"
    if judgement["extra"]:
        return "unasked change"
    return "wrong answer" if answer.strip() else "no answer"


def _counted(missing: list[dict[str, Any]]) -> str:
    kinds = Counter(f"{_VERBS[one['kind']]} {one['table']}" for one in missing)
    return ", ".join(kind if count == 1 else f"{count} times {kind}" for kind, count in kinds.items())


def _shown(change: dict[str, Any]) -> str:
    before: dict[str, Any] = change["before"] or {}
    after: dict[str, Any] = change["after"] or {}
    if change["kind"] == "update":
        after = {column: value for column, value in after.items() if before.get(column) != value}
    return f"{_VERBS[change['kind']]} {change['table']} ({shown_row(after or before)})"
