"""Moving a record: it arrives as it left, or not at all."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drafts import BASE, WORLD, adapter_draft, draft, policy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whet.core import InputError
from whet.registry import Proof, Registry, open_registry, read_archive, write_archive
from whet.testing import FakeClock


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with open_registry(tmp_path / "here", FakeClock()) as opened:
        yield opened


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Registry]:
    with open_registry(tmp_path / "there", FakeClock()) as opened:
        yield opened


def about(text: str = "") -> Callable[[str], Proof]:
    """Reads every certificate as one over the starting policy."""
    return lambda body: Proof(policy(text).fingerprint, policy("start").fingerprint, body)


def exported(registry: Registry, tmp_path: Path) -> Path:
    record = registry.publish(adapter_draft(tmp_path / "adapter"))
    write_archive(registry, record, tmp_path / "one.whet")
    return tmp_path / "one.whet"


def test_a_record_moves_with_its_files_and_proofs(registry: Registry, elsewhere: Registry, tmp_path: Path) -> None:
    record = registry.publish(draft("Be brief.", over=policy("start")))
    write_archive(registry, record, tmp_path / "one.whet")
    moved = read_archive(elsewhere, tmp_path / "one.whet", about("Be brief."))
    assert (moved.id, moved.body, moved.imported, moved.certified) == (record.id, record.body, True, True)
    assert elsewhere.policy(moved.id) == policy("Be brief.")
    assert not elsewhere.activate(moved.id).forced
    assert elsewhere.resolve(WORLD, BASE.fingerprint) is not None


def test_the_same_record_exports_to_the_same_bytes(registry: Registry, tmp_path: Path) -> None:
    record = registry.publish(draft())
    for name in ("one", "two"):
        write_archive(registry, record, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_damaged_record_is_not_exported(registry: Registry, tmp_path: Path) -> None:
    record = registry.publish(draft())
    (registry.package(record) / "skill/SKILL.md").write_text("changed")
    with pytest.raises(InputError, match=r"skill/SKILL\.md is not what it was"):
        write_archive(registry, record, tmp_path / "one.whet")
    assert not list(tmp_path.glob("*.whet*"))


def rewritten(path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], compress: bool = False) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, content in entries:
            put = change(name, content)
            if put is not None:
                archive.writestr(*put)


CHANGES: dict[str, Callable[[str, bytes], tuple[str, bytes] | None]] = {
    "other weights": lambda name, content: (name, b"evil" if name.endswith(".gguf") else content),
    "a missing file": lambda name, content: None if name.endswith(".gguf") else (name, content),
    "a file more": lambda name, content: (name if name != "files/policy.json" else "files/../../x", content),
    "another world": lambda name, content: (name, content.replace(b"grid_ctf", b"my_world")),
    "another base": lambda name, content: (name, content.replace(b"b" * 32, b"c" * 32)),
    "no record": lambda name, content: None if name == "record.json" else (name, content),
    "a record of nonsense": lambda name, content: (name, b"[1" if name == "record.json" else content),
    "a later format": lambda name, content: (name, content.replace(b'"format":1', b'"format":9')),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_export_is_refused_and_nothing_is_added(
    registry: Registry, elsewhere: Registry, tmp_path: Path, change: str
) -> None:
    path = exported(registry, tmp_path)
    rewritten(path, CHANGES[change])
    with pytest.raises(InputError):
        read_archive(elsewhere, path, about())
    assert elsewhere.records() == []


def test_a_compressed_export_is_refused(registry: Registry, elsewhere: Registry, tmp_path: Path) -> None:
    path = exported(registry, tmp_path)
    rewritten(path, lambda name, content: (name, content + b" " * 4000), compress=True)
    with pytest.raises(InputError, match="compressed"):
        read_archive(elsewhere, path, about())


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damaged_bytes_get_in(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Cut anywhere, or with any byte changed: refused, or the very same record."""
    folder = tmp_path_factory.mktemp("damage")
    with open_registry(folder / "here", FakeClock()) as here, open_registry(folder / "there", FakeClock()) as there:
        path = exported(here, folder)
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        other = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
        if data.draw(st.booleans()):
            path.write_bytes(whole[:place])
        else:
            path.write_bytes(whole[:place] + other + whole[place + 1 :])
        try:
            moved = read_archive(there, path, about())
        except InputError:
            assert there.records() == []
        else:
            assert here.record(moved.id).body == moved.body
            assert there.damaged(moved) == []


def test_what_is_no_export_is_refused(elsewhere: Registry, tmp_path: Path) -> None:
    path = tmp_path / "x.whet"
    for content in (b"", b"PK", b"\x80\x04.", b"{}" * 100):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no export"):
            read_archive(elsewhere, path, about())
    with pytest.raises(InputError, match="cannot be read"):
        read_archive(elsewhere, tmp_path / "none.whet", about())
