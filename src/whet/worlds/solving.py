"""Playing what a world offers as a known good way through a task: an answer, or acts and an answer."""

from __future__ import annotations

from typing import Any

from whet.core import Session, Solution, Task, Verdict, World, WorldFault


def known_good(world: World, task: Task) -> Solution | None:
    """What must pass, where the world offers it; an answer alone is a solution without acts."""
    offered: Any = getattr(world, "known_good", None)
    good: Any = offered(task) if callable(offered) else None
    if good is None or isinstance(good, Solution):
        return good
    return Solution(answer=str(good))


async def play(session: Session, solution: Solution) -> Verdict:
    """Do what the solution does and have it judged. An act that cannot be called is the world's fault; a no is not."""
    names = {tool.name for tool in session.tools}
    for act in solution.acts:
        if act.tool not in names:
            raise WorldFault(f"a solution calls {act.tool}, which is none of the tools")
        await session.call(act.tool, act.arguments)
    return await session.judge(solution.answer)
