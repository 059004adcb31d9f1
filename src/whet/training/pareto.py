"""Training that keeps every policy which is best at something, and joins what each is best at."""

from __future__ import annotations

import msgspec

from whet.core import Edit, EditResult, Policy, Proposal, Ruling, Score, Step, content_key
from whet.gate import select_gate_score
from whet.training.front import Front, Member
from whet.training.judging import play_all
from whet.training.loop import Training
from whet.training.monitor import Monitor
from whet.training.records import RecordKind
from whet.training.workshop import Workshop


class ParetoTraining(Training):
    """Each step goes on from a member of the front; a candidate joins if it is better than all others at some task.

    Every candidate is measured on all selection tasks, for that is how the front knows what it is best at.
    """

    def __init__(self, workshop: Workshop, monitor: Monitor) -> None:
        super().__init__(workshop, monitor)
        self._front = Front(self._start)

    def _parent(self, step: Step) -> Policy:
        return self._front.pick(step.key)

    async def _judged(self, proposal: Proposal, incumbent: Policy, name: str) -> Ruling | None:
        measured = await self._rule(proposal, incumbent, name, rule="off")
        if measured is None or proposal.candidate is None:
            return None
        parent = self._front.member(incumbent)
        if parent is not None and not parent.scores:
            self._front.measured(incumbent, await self._scores(incumbent))
        before = parent.edits if parent is not None else ()
        candidate = Member(
            proposal.candidate, await self._scores(proposal.candidate), (*before, *_applied(proposal.edits))
        )
        joined = self._front.join(candidate)
        best = self._best_score is None or measured.candidate > max(self._best_score, measured.incumbent)
        return msgspec.structs.replace(
            measured,
            accepted=joined,
            new_best=joined and best,
            reason=f"it scores {measured.candidate:.4f} and "
            + (f"joins the front of {len(self._front.members)}" if joined else "is best at nothing"),
        )

    def _take(self, proposal: Proposal, ruling: Ruling | None) -> None:
        super()._take(proposal, ruling)
        # There is no one current policy; for whatever asks for one it is the best.
        self._current = self._best

    async def _end_epoch(self, step: Step) -> None:
        await super()._end_epoch(step)
        pair = self._front.complements()
        if pair is None:
            return
        one, other = pair
        proposal = await self._taught.join(self._start, one.edits, other.edits, content_key("join", step.key))
        ruling = await self._judged(proposal, one.policy, f"epoch {step.epoch}: join")
        self._take(proposal, ruling)
        await self._record(RecordKind.JOIN, step, Score(0.0, 0.0, 0), one.policy, proposal, ruling)

    async def _scores(self, policy: Policy) -> dict[str, float]:
        """Played already, so this asks the store."""
        gate = self._config.gate
        stage = self._monitor.stage("look up", len(self._selection))
        played = await play_all(self._engine, policy, self._selection, stage)
        self._monitor.ended(stage)
        return {one.task: select_gate_score(one.hard, one.soft, gate.metric, gate.mix) for one in played}


def _applied(edits: tuple[EditResult, ...]) -> tuple[Edit, ...]:
    return tuple(result.edit for result in edits if result.status.changed)
