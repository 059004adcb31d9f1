"""Adapters on disk: as PEFT keeps them (safetensors and a JSON file), and as llama.cpp reads them (GGUF).

An adapter is named by what it computes: its tensors and its scale. Loading one runs nothing of it.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from whet.core import InputError
from whet.learners.adapter.orders import write_whole
from whet.learners.adapter.shapes import SITES, Shape, Site, lora_name, sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
_PICKLED: Final = "adapter_model.bin"
_UNNAMED: Final = (None, "", "main")
"""Revisions that say nothing. PEFT's key for the base's revision holds the fingerprint of the one that it fits."""


class AdapterConfig(msgspec.Struct, frozen=True):
    """What has to be known of `adapter_config.json`; whatever would change what the adapter computes must be absent."""

    r: int
    lora_alpha: float
    target_modules: tuple[str, ...] | str
    peft_type: str = "LORA"
    bias: str = "none"
    use_rslora: bool = False
    use_dora: bool = False
    fan_in_fan_out: bool = False
    modules_to_save: tuple[str, ...] | None = None
    rank_pattern: dict[str, int] = {}
    alpha_pattern: dict[str, float] = {}
    layers_to_transform: tuple[int, ...] | int | None = None
    revision: str | None = None

    @property
    def scale(self) -> float:
        return self.lora_alpha / self.r


def write_adapter(folder: Path, tensors: Mapping[str, Tensor], *, rank: int, alpha: int, base: str, model: str) -> None:
    from safetensors.torch import save

    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": model,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "target_modules": sorted(site.name.rpartition(".")[2] for site in SITES),
        "revision": base,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / WEIGHTS, save(dict(sorted(tensors.items())), {"format": "pt"}))
    write_whole(folder / CONFIG, msgspec.json.format(msgspec.json.encode(config), indent=1) + b"\n")


class Adapter(msgspec.Struct, frozen=True):
    """A checked adapter: for each block and site, A and B."""

    config: AdapterConfig
    tensors: dict[tuple[int, str], tuple[Any, Any]]

    @property
    def fingerprint(self) -> str:
        """By content: not by names or times of files, nor by how they are laid out."""
        digest = blake2b(msgspec.json.encode(("lora", self.config.r, float(self.config.lora_alpha))), digest_size=16)
        for (layer, site), pair in sorted(self.tensors.items()):
            for which, tensor in zip("AB", pair, strict=True):
                digest.update(f"{layer} {site} {which} {tuple(tensor.shape)} ".encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


def read_adapter(folder: Path, shape: Shape, *, base: str = "") -> Adapter:
    """Whatever is wrong with it is an InputError in one line; `base` is the fingerprint of the model it has to fit."""
    config = _config(folder)
    if base and config.revision not in (*_UNNAMED, base):
        raise InputError(
            f"{folder} is an adapter for another base model ({config.revision})", hint=f"The one here is {base}"
        )
    found = _tensors(folder)
    tensors: dict[tuple[int, str], tuple[Any, Any]] = {}
    for layer in range(shape.layers):
        for site in SITES:
            a, b = (found.pop(lora_name(layer, site, which), None) for which in "AB")
            if a is None and b is None:
                continue
            _check_pair(folder, layer, site, (a, b), config.r, sizes(shape, site))
            tensors[layer, site.gguf] = (a, b)
    if found:
        raise InputError(f"{folder}: tensor {min(found)} is not of a LoRA of this model")
    if not tensors:
        raise InputError(f"{folder} holds no LoRA weights")
    return Adapter(config, tensors)


def _config(folder: Path) -> AdapterConfig:
    path = folder / CONFIG
    try:
        config = msgspec.json.decode(path.read_bytes(), type=AdapterConfig)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} does not describe an adapter: {error}") from error
    other = {
        "peft_type": config.peft_type != "LORA",
        "bias": config.bias != "none",
        "use_rslora": config.use_rslora,
        "use_dora": config.use_dora,
        "fan_in_fan_out": config.fan_in_fan_out,
        "modules_to_save": bool(config.modules_to_save),
        "rank_pattern": bool(config.rank_pattern),
        "alpha_pattern": bool(config.alpha_pattern),
    }
    for name, differs in other.items():
        if differs:
            raise InputError(f"{path}: `{name}` is not supported", hint="Plain LoRA on linear layers is")
    if not (0 < config.r <= 4096 and math.isfinite(config.lora_alpha) and config.lora_alpha > 0):
        raise InputError(f"{path}: rank {config.r} and alpha {config.lora_alpha} are not those of a LoRA")
    return config


def _tensors(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = folder / WEIGHTS
    if not path.exists():
        if (folder / _PICKLED).exists():
            raise InputError(
                f"{folder / _PICKLED} is a pickle, which could run code, and is not opened",
                hint="Save the adapter as safetensors",
            )
        raise InputError(f"{folder} has no {WEIGHTS}")
    try:
        return load(path.read_bytes())
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is not a whole safetensors file: {error}") from error


def _check_pair(folder: Path, layer: int, site: Site, pair: tuple[Any, ...], rank: int, size: tuple[int, int]) -> None:
    for which, tensor, expected in zip("AB", pair, ((rank, size[1]), (size[0], rank)), strict=True):
        name = lora_name(layer, site, which)
        if tensor is None:
            raise InputError(f"{folder}: tensor {name} is missing")
        if tuple(tensor.shape) != expected:
            raise InputError(f"{folder}: tensor {name} has the shape {tuple(tensor.shape)}, not {expected}")
        if not (tensor.is_floating_point() and bool(tensor.isfinite().all())):
            raise InputError(f"{folder}: tensor {name} holds what is not a number")


def write_lora(adapter: Adapter, shape: Shape, path: Path) -> None:
    """For llama.cpp, which has the rows of q and k of some families in an order of its own."""
    from gguf.constants import GGUFType, Keys
    from gguf.gguf_writer import GGUFWriter

    from whet.learners.adapter.base import in_pairs

    new = path.with_name(path.name + ".new")
    writer = GGUFWriter(str(new), shape.family)
    writer.add_type(GGUFType.ADAPTER)
    writer.add_string(Keys.Adapter.TYPE, "lora")
    writer.add_float32(Keys.Adapter.LORA_ALPHA, float(adapter.config.lora_alpha))
    for (layer, site), (a, b) in adapter.tensors.items():
        rows = in_pairs(b, b.shape[0] // shape.head_size) if shape.permuted and site in ("attn_q", "attn_k") else b
        writer.add_tensor(f"blk.{layer}.{site}.weight.lora_a", a.float().contiguous().numpy())
        writer.add_tensor(f"blk.{layer}.{site}.weight.lora_b", rows.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    new.replace(path)
