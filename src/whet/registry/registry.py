"""The registry: publish, activate, roll back, resolve. Any number of processes may do so at once.

Every change is one transaction of the index. A package is put in place inside the transaction that adds its record, and
what a killed process left without one is swept by the next that writes: so there is never a record without files, and
never for long files without a record.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from whet.core import Clock, InputError, Policy
from whet.registry.files import Packages, check_path, package_name
from whet.registry.records import (
    ADAPTER_FILE,
    ADAPTER_FOLDER,
    POLICY_FILE,
    SKILL_FOLDER,
    STABLE,
    Activation,
    Body,
    Draft,
    Proof,
    Record,
    State,
    kind_of,
    policy_text,
    read_policy,
    record_id,
)
from whet.store.registry import ActivationRow, RecordRow, RegistryIndex

FORMAT = 1
FOLDER = "registry"
_SHORTEST_ID = 4


@contextmanager
def open_registry(home: Path, clock: Clock, who: str = "") -> Generator[Registry]:
    """The registry under the data folder `home`; made if it is not there."""
    index = RegistryIndex(home / FOLDER / "registry.db")
    try:
        yield Registry(home / FOLDER, index, clock, who)
    finally:
        index.close()


class Registry:
    def __init__(self, folder: Path, index: RegistryIndex, clock: Clock, who: str) -> None:
        self._index = index
        self._packages = Packages(folder / "packages")
        self._clock = clock
        self._who = who

    def version(self) -> int:
        """Another number once another process has changed something; costs microseconds."""
        return self._index.version()

    def publish(self, draft: Draft) -> Record:
        """Add a record with its files. Publishing the same again gives the record that there is, with new proofs."""
        contents = _contents(draft)
        with self._index.writing():
            self._packages.sweep(self._index.packages())
            files = self._packages.put(contents)
            made = record_id(draft.world, draft.base, draft.policy.fingerprint, draft.origin.run, files)
            body = Body(
                FORMAT,
                kind_of(draft.policy),
                draft.base,
                draft.origin,
                draft.parents,
                draft.evidence,
                files,
                self._who,
                draft.note,
            )
            self._add(made, draft.world, draft.policy.fingerprint, body, imported=False)
            self._add_proofs(made, draft.policy.fingerprint, draft.proofs)
        return self.record(made)

    def take_in(
        self,
        id: str,
        world: str,
        policy: str,
        body: Body,
        contents: Mapping[str, bytes | Path],
        proofs: Sequence[Proof],
    ) -> Record:
        """Add a record that another registry wrote, under its own id. What it holds is compared with what it says."""
        if id != record_id(world, body.base, policy, body.origin.run, body.files):
            raise InputError(f"record {id[:20]!r} is not what its id says", hint="Export the record again.")
        with self._index.writing():
            self._packages.sweep(self._index.packages())
            files = self._packages.put(contents)
            wrong = [name for name in files.keys() | body.files.keys() if files.get(name) != body.files.get(name)]
            if wrong:
                raise InputError(f"{min(wrong)} is not what its record says", hint="Export the record again.")
            self._add(id, world, policy, body, imported=True)
            self._add_proofs(id, policy, proofs)
            self.policy(id)
        return self.record(id)

    def _add(self, id: str, world: str, policy: str, body: Body, *, imported: bool) -> None:
        package = package_name(body.files)
        encoded = msgspec.json.encode(body)
        row = RecordRow(id, world, body.base.fingerprint, policy, package, self._clock.wall(), imported, "", encoded)
        self._index.add_record(row)

    def add_proof(self, id: str, proof: Proof) -> None:
        record = self.record(id)
        with self._index.writing():
            self._add_proofs(record.id, record.policy, [proof])

    def _add_proofs(self, id: str, policy: str, proofs: Sequence[Proof]) -> None:
        for proof in proofs:
            if proof.candidate != policy:
                raise InputError(f"this certificate is not about record {id}", hint="It names another policy.")
            self._index.add_certificate(id, proof.incumbent, proof.body)

    def records(self, world: str = "") -> list[Record]:
        """Oldest first."""
        active = {row.record for row in self._index.all_active()}
        were = {row.record for row in self._index.history(world)}
        return [self._record(row, active, were) for row in self._index.records(world=world)]

    def record(self, id: str) -> Record:
        """By its id, or by the beginning of one. Raises InputError."""
        found = self._index.records(prefix=id) if len(id) >= _SHORTEST_ID else []
        if len(found) != 1:
            why = "fits several records" if found else "is no record of the registry"
            raise InputError(f"{id!r} {why}", hint="`whet registry list` names them.")
        row = found[0]
        active = {row.record for row in self._index.all_active()}
        return self._record(row, active, {row.record for row in self._index.history(row.world)})

    def _record(self, row: RecordRow, active: set[str], were: set[str]) -> Record:
        if row.rejected:
            state = State.REJECTED
        elif row.id in active:
            state = State.ACTIVE
        else:
            state = State.RETIRED if row.id in were else State.CANDIDATE
        body = msgspec.json.decode(row.body, type=Body)
        certified = bool(self._index.certificates(row.id))
        return Record(
            row.id, row.world, row.policy, row.package, row.at, body, state, row.rejected, row.imported, certified
        )

    def certificates(self, id: str) -> list[str]:
        return self._index.certificates(self.record(id).id)

    def policy(self, id: str) -> Policy:
        """The policy as it was published."""
        record = self.record(id)
        skill = {
            name.removeprefix(f"{SKILL_FOLDER}/"): self._packages.read(record.package, name).decode()
            for name in record.body.files
            if name.startswith(f"{SKILL_FOLDER}/")
        }
        text = self._packages.read(record.package, POLICY_FILE)
        return read_policy(text, skill, record.policy, f"record {record.id}")

    def adapter_file(self, id: str) -> Path | None:
        """The adapter as llama.cpp loads it; None if the policy has none."""
        record = self.record(id)
        return self._packages.path(record.package) / ADAPTER_FILE if ADAPTER_FILE in record.body.files else None

    def adapter_folder(self, id: str) -> Path | None:
        """The adapter in every format it was published in."""
        file = self.adapter_file(id)
        return None if file is None else file.parent

    def file(self, record: Record, name: str) -> bytes:
        return self._packages.read(record.package, name)

    def package(self, record: Record) -> Path:
        return self._packages.path(record.package)

    def damaged(self, record: Record) -> list[str]:
        return self._packages.damaged(record.package, record.body.files)

    def activate(self, id: str, *, channel: str = STABLE, force: bool = False) -> Activation:
        """Make it what is served at its place. Without a proof that it is better than what is, only by force."""
        check_path(channel)
        with self._index.writing():
            record = self.record(id)
            if record.state is State.REJECTED:
                raise InputError(f"record {record.id} was rejected: {record.rejected}", hint="Publish another one.")
            current = self._index.active(record.world, record.base.fingerprint, channel)
            if current is not None and current.record == record.id:
                return _activation(current)
            proven = self._proven(record, current)
            if not proven and not force:
                raise _unproven(record, current)
            before = current.id if current is not None else None
            forced = not proven
            self._activate(record.id, record.world, record.base.fingerprint, channel, before, forced, restored=False)
        return self._active(record.world, record.base.fingerprint, channel)

    def _proven(self, record: Record, current: ActivationRow | None) -> bool:
        incumbents = self._index.incumbents(record.id)
        if current is None:
            return bool(incumbents)
        standing = self._index.records(prefix=current.record)
        return any(row.policy in incumbents for row in standing)

    def rollback(self, world: str, base: str, *, channel: str = STABLE) -> Activation:
        """What was active before is active again."""
        with self._index.writing():
            current = self._index.active(world, base, channel)
            if current is None:
                raise InputError(f"nothing is active for {world} on channel {channel}", hint="`whet registry list`.")
            before = self._last_that_is(current)
            if before is None:
                raise InputError(f"nothing was active for {world} before {current.record}", hint="Activate another.")
            self._activate(before.record, world, base, channel, before.before, before.forced, restored=True)
        return self._active(world, base, channel)

    def _last_that_is(self, current: ActivationRow) -> ActivationRow | None:
        """The activation before this one whose record has not been deleted or rejected since."""
        number = current.before
        while number is not None:
            before = self._index.activation(number)
            if before is None:
                return None
            if any(not row.rejected for row in self._index.records(prefix=before.record)):
                return before
            number = before.before
        return None

    def _activate(
        self, record: str, world: str, base: str, channel: str, before: int | None, forced: bool, *, restored: bool
    ) -> None:
        at, who = self._clock.wall(), self._who
        self._index.add_activation(ActivationRow(0, world, base, channel, record, before, forced, restored, at, who))

    def _active(self, world: str, base: str, channel: str) -> Activation:
        row = self._index.active(world, base, channel)
        assert row is not None, "it was just made active"
        return _activation(row)

    def resolve(self, world: str, base: str, *, channel: str = STABLE) -> Record | None:
        """What is to be served for `world` on this base model. No other code decides that."""
        row = self._index.active(world, base, channel)
        return None if row is None else self.record(row.record)

    def active(self) -> list[Activation]:
        """Every place with what is active there."""
        return [_activation(row) for row in self._index.all_active()]

    def history(self, world: str = "") -> list[Activation]:
        return [_activation(row) for row in self._index.history(world)]

    def reject(self, id: str, why: str) -> None:
        """Mark it as never to be used."""
        with self._index.writing():
            record = self.record(id)
            self._refuse_active(record, "rejected")
            self._index.reject(record.id, why or "no reason given")

    def delete(self, id: str) -> None:
        with self._index.writing():
            record = self.record(id)
            self._refuse_active(record, "deleted")
            self._index.delete(record.id)
        with self._index.writing():
            # The record is gone for good, now its files may go.
            self._packages.sweep(self._index.packages())

    def _refuse_active(self, record: Record, done: str) -> None:
        if record.state is State.ACTIVE:
            raise InputError(f"record {record.id} is active, so it cannot be {done}", hint="Activate another first.")


def _contents(draft: Draft) -> dict[str, bytes | Path]:
    contents: dict[str, bytes | Path] = {POLICY_FILE: policy_text(draft.policy)}
    for name, text in draft.policy.skill.files.items():
        contents[f"{SKILL_FOLDER}/{name}"] = text.encode()
    if draft.adapter is not None:
        contents |= {
            f"{ADAPTER_FOLDER}/{path.name}": path for path in sorted(draft.adapter.iterdir()) if path.is_file()
        }
    if (draft.policy.adapter is not None) is not (ADAPTER_FILE in contents):
        raise InputError("a policy with an adapter is published with its files, and one without has none")
    return contents


def _unproven(record: Record, current: ActivationRow | None) -> InputError:
    over = "the policy it started from" if current is None else f"{current.record}, which is active"
    return InputError(
        f"nothing proves that record {record.id} is better than {over}",
        hint="`whet certify` tries to; --force activates it all the same, marked so.",
    )


def _activation(row: ActivationRow) -> Activation:
    return Activation(row.world, row.base, row.channel, row.record, row.at, row.who, row.forced, row.restored)
