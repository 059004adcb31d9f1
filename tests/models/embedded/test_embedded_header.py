"""What a GGUF file says is read within bounds: whatever is in it, it is read or refused, at once."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from gguf_files import MODEL, gguf, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whet.core import InputError
from whet.models.embedded.header import read_header, read_model_header


def written(folder: Path, content: bytes) -> Path:
    path = folder / "some.gguf"
    path.write_bytes(content)
    return path


def test_a_language_model_tells_what_whet_needs_to_know(tmp_path: Path) -> None:
    vocabulary = {"tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.token_type": [1, 1]}
    header = read_model_header(written(tmp_path, gguf({**vocabulary, **MODEL}, tensors=3)))
    assert (header.architecture, header.context, header.file_type, header.end_token) == ("llama", 64, "Q8_0", 2)
    assert header.template == "{{ messages }}"
    assert header.tensors == ("t0", "t1", "t2")


def test_the_end_of_a_turn_goes_before_the_end_of_a_text(tmp_path: Path) -> None:
    header = read_model_header(written(tmp_path, gguf({**MODEL, "tokenizer.ggml.eot_token_id": 7})))
    assert header.end_token == 7


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"general.type": "adapter"}, "is an adapter"),
        ({"llama.attention.causal": False}, "no language model"),
        ({"llama.context_length": 0}, "no language model"),
        ({"tokenizer.ggml.model": ""}, "no language model"),
    ],
)
def test_what_is_no_language_model_is_refused(tmp_path: Path, values: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_model_header(written(tmp_path, gguf({**MODEL, **values})))


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gguf(MODEL, tensors=2)
    read_header(written(tmp_path, whole))
    for length in range(0, len(whole), 7):
        with pytest.raises(InputError):
            read_header(written(tmp_path, whole[:length]))
    with pytest.raises(InputError, match="cut off"):
        read_header(written(tmp_path, whole[:-1]))


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**62),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 8, 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 9, 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 4, 2**62),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<I", 2**31),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<IQIQ", 1, 2**63, 0, 2**63),
        b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
        gguf({"general.alignment": 0}),
        b"",
        b"GG",
        b"PK\3\4 something else",
    ],
)
def test_no_count_in_a_file_is_believed(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError):
        read_header(written(tmp_path, content))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=1000)
@given(st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path: Path, damage: list[tuple[int, bytes]]) -> None:
    content = bytearray(gguf({**MODEL, "tokenizer.ggml.tokens": ["a", "b", "c"]}, tensors=2))
    for place, other in damage:
        content[place : place + len(other)] = other
    with suppress(InputError):
        assert read_model_header(written(tmp_path, bytes(content))).context > 0


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_header(tmp_path / "none.gguf")
