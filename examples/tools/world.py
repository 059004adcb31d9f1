"""A till that must end up holding a given sum, filled coin by coin."""

from collections.abc import Iterator
from random import Random

import whet


@whet.world("till")
class Till:
    """Put coins into a till until it holds exactly the sum that is asked for."""

    def tasks(self) -> Iterator[dict[str, str]]:
        for total in range(3, 63):
            yield {"id": f"sum-{total}", "total": str(total)}

    def start(self, task: whet.Task, rng: Random) -> list[int]:
        return []

    def brief(self, task: whet.Task) -> str:
        return f"Make the till hold exactly {task.inputs['total']}. There are coins of 1, 5 and 20."

    @whet.tool
    def put(self, state: list[int], coin: int, count: int = 1) -> str:
        """Put coins of one kind into the till."""
        if coin not in (1, 5, 20):
            raise whet.ToolRefusal(f"there is no coin of {coin}")
        state.extend([coin] * count)
        return f"The till holds {sum(state)}."

    def judge(self, task: whet.Task, state: list[int], answer: str) -> whet.Verdict:
        wanted, held = int(str(task.inputs["total"])), sum(state)
        few = len(state) <= wanted // 20 + wanted % 20 // 5 + wanted % 5
        passed = held == wanted and few
        reason = "" if passed else ("coins: more than needed" if held == wanted else f"sum: {held} and not {wanted}")
        return whet.Verdict(passed, 1.0 if passed else 0.5 * (held == wanted), reason)
