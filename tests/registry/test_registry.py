"""What the registry promises to whoever publishes and to whoever is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import BASE, WORLD, adapter_draft, draft, policy

from whet.core import InputError
from whet.registry import Draft, Kind, Measure, Proof, Registry, State, difference, open_registry, tree
from whet.testing import FakeClock

START = policy("start")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with open_registry(tmp_path, FakeClock(), who="ann") as opened:
        yield opened


def test_a_published_policy_comes_back_as_it_was(registry: Registry) -> None:
    made = draft("Be brief.\n")
    record = registry.publish(made)
    assert registry.policy(record.id) == made.policy
    assert record.state is State.CANDIDATE
    assert record.kind is Kind.SKILL
    assert record.body.who == "ann"
    assert record.body.evidence == made.evidence


def test_publishing_again_gives_the_same_record_and_adds_its_proof(registry: Registry) -> None:
    first = registry.publish(draft())
    again = registry.publish(draft(over=START))
    assert again.id == first.id
    assert not first.certified
    assert again.certified
    assert len(registry.records()) == 1


def test_an_adapter_is_published_with_its_files(registry: Registry, tmp_path: Path) -> None:
    record = registry.publish(adapter_draft(tmp_path / "made"))
    file = registry.adapter_file(record.id)
    assert file is not None
    assert file.read_bytes() == b"GGUF weights"
    assert record.kind is Kind.ADAPTER
    assert registry.damaged(record) == []
    file.write_bytes(b"GGUF weightz")
    assert registry.damaged(record) == ["adapter/adapter.gguf"]


def test_a_policy_with_an_adapter_is_not_published_without_its_files(registry: Registry, tmp_path: Path) -> None:
    made = adapter_draft(tmp_path / "made")
    with pytest.raises(InputError, match="with its files"):
        registry.publish(Draft(made.policy, WORLD, BASE))
    assert registry.records() == []


def test_what_is_not_proven_is_activated_by_force_only_and_marked(registry: Registry) -> None:
    record = registry.publish(draft())
    with pytest.raises(InputError, match="nothing proves"):
        registry.activate(record.id)
    assert registry.resolve(WORLD, BASE.fingerprint) is None
    assert registry.activate(record.id, force=True).forced
    assert registry.active()[0].forced


def test_a_proof_must_be_over_what_is_active(registry: Registry) -> None:
    first = registry.publish(draft("one", over=START))
    assert not registry.activate(first.id).forced
    second = registry.publish(draft("two", over=START))
    with pytest.raises(InputError, match=f"better than {first.id}, which is active"):
        registry.activate(second.id)
    registry.add_proof(second.id, Proof(policy("two").fingerprint, policy("one").fingerprint, "{}"))
    assert not registry.activate(second.id).forced


def test_a_proof_about_another_policy_is_refused(registry: Registry) -> None:
    record = registry.publish(draft("one"))
    with pytest.raises(InputError, match="not about record"):
        registry.add_proof(record.id, Proof(policy("two").fingerprint, START.fingerprint, "{}"))


def test_one_policy_is_active_at_a_place_and_rollback_brings_back_the_one_before(registry: Registry) -> None:
    ids = [registry.publish(draft(text)).id for text in ("one", "two", "three")]
    for id in ids:
        registry.activate(id, force=True)
    assert [registry.record(id).state for id in ids] == [State.RETIRED, State.RETIRED, State.ACTIVE]
    assert registry.rollback(WORLD, BASE.fingerprint).record == ids[1]
    assert registry.rollback(WORLD, BASE.fingerprint).record == ids[0]
    with pytest.raises(InputError, match="nothing was active"):
        registry.rollback(WORLD, BASE.fingerprint)
    assert [one.record for one in registry.history()] == [*ids, ids[1], ids[0]]
    assert [one.restored for one in registry.history()] == [False, False, False, True, True]


def test_activating_what_is_active_changes_nothing(registry: Registry) -> None:
    record = registry.publish(draft())
    registry.activate(record.id, force=True)
    registry.activate(record.id)
    assert len(registry.history()) == 1


def test_channels_and_bases_are_places_of_their_own(registry: Registry) -> None:
    one, two = (registry.publish(draft(text)).id for text in ("one", "two"))
    registry.activate(one, force=True)
    registry.activate(two, channel="canary", force=True)
    stable, canary = (
        registry.resolve(WORLD, BASE.fingerprint),
        registry.resolve(WORLD, BASE.fingerprint, channel="canary"),
    )
    assert stable is not None
    assert canary is not None
    assert (stable.id, canary.id) == (one, two)
    assert registry.resolve(WORLD, "another base") is None


def test_what_is_active_is_neither_deleted_nor_rejected(registry: Registry) -> None:
    one, two = (registry.publish(draft(text)).id for text in ("one", "two"))
    registry.activate(one, force=True)
    for refused in (registry.delete, lambda id: registry.reject(id, "bad")):
        with pytest.raises(InputError, match="is active"):
            refused(one)
    registry.delete(two)
    assert [record.id for record in registry.records()] == [one]


def test_a_rollback_passes_over_what_was_rejected_or_deleted(registry: Registry) -> None:
    ids = [registry.publish(draft(text)).id for text in ("one", "two", "three", "four")]
    for id in ids:
        registry.activate(id, force=True)
    registry.reject(ids[2], "it says please")
    registry.delete(ids[1])
    assert registry.rollback(WORLD, BASE.fingerprint).record == ids[0]
    with pytest.raises(InputError, match="it says please"):
        registry.activate(ids[2], force=True)


def test_deleting_a_record_removes_files_that_nobody_else_needs(registry: Registry, tmp_path: Path) -> None:
    record = registry.publish(draft())
    package = registry.package(record)
    assert package.is_dir()
    registry.delete(record.id)
    assert not package.exists()


def test_a_record_is_found_by_the_beginning_of_its_id(registry: Registry) -> None:
    record = registry.publish(draft())
    assert registry.record(record.id[:6]) == record
    for wrong in ("", "abc", "zzzzzzzz", "%%%%", record.id + "0"):
        with pytest.raises(InputError, match="no record"):
            registry.record(wrong)


def test_another_connection_sees_a_change_by_the_version(registry: Registry, tmp_path: Path) -> None:
    with open_registry(tmp_path, FakeClock()) as other:
        before = registry.version()
        other.publish(draft())
        assert registry.version() != before


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_evidence_is_finite(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Measure("test", "hard", number, 0.0, 1.0, 5)


def test_lineage_is_a_tree(registry: Registry) -> None:
    root = registry.publish(draft("root"))
    left = registry.publish(draft("left", parents=(root.id,)))
    leaf = registry.publish(draft("leaf", parents=(left.id,)))
    right = registry.publish(draft("right", parents=(root.id,)))
    drawn = [(line.branch, line.record.id) for line in tree([root, left, leaf, right])]
    assert drawn == [("", root.id), ("├── ", left.id), ("│   └── ", leaf.id), ("└── ", right.id)]


def test_two_records_differ_by_settings_files_and_text(registry: Registry) -> None:
    before, after = registry.publish(draft("old line\n")), registry.publish(draft("new line\n"))
    found = difference(before, after, (policy("old line\n").skill.files, policy("new line\n").skill.files))
    assert found.files == ("skill/SKILL.md",)
    assert "-old line" in found.skill
    assert "+new line" in found.skill
    assert len(found.evidence) == 2


@pytest.mark.parametrize("name", ["../out", "/abs", "a/../../b", "a//b", ".hidden", "con.", "a\\b", ""])
def test_no_path_leads_out_of_a_package(registry: Registry, name: str) -> None:
    made = policy()
    escaping = made.with_skill(made.skill.with_file(name, "x"))
    with pytest.raises(InputError, match="cannot be the path"):
        registry.publish(Draft(escaping, WORLD, BASE))
    assert registry.records() == []
