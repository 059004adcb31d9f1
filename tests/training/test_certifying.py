"""A certificate rests on fresh plays, can be replayed, and cannot be bought by asking again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from whet.core import InputError, Skill, Split
from whet.gate import AlphaLedger, Finding, read_certificate
from whet.testing import rule_of
from whet.training import Silent, load_config, open_workshop, prepare
from whet.training.certifying import ALPHA_FILE, CERTIFICATE, certify, split_for

CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = 12
selection = 12
test = 60

[target]
model = "scripted/models.py:student"
"""


async def attempt(folder: Path, skill: str, *, samples: int = 2, run: str = "run-1") -> Finding:
    (folder / "models.py").write_text("from whet.testing.simulation import student\n")
    (folder / "whet.toml").write_text(CONFIG)
    project = prepare(load_config(folder / "whet.toml"), folder)
    async with open_workshop(project, folder / "runs" / run) as workshop:
        best = project.start.with_skill(Skill.from_text(skill))
        return await certify(workshop, best, split_for(project), samples, Silent())


def alphas(folder: Path) -> AlphaLedger:
    ledgers = msgspec.json.decode((folder / "runs" / ALPHA_FILE).read_bytes(), type=dict[str, AlphaLedger])
    return ledgers["simulated"]


async def test_a_real_gain_is_certified_on_fresh_samples_and_written_beside_the_run(tmp_path: Path) -> None:
    finding = await attempt(tmp_path, "\n".join(rule_of(f"kind{n}") for n in range(4)))
    assert finding.certificate is not None
    written = read_certificate((tmp_path / "runs" / "run-1" / CERTIFICATE).read_text())
    assert written == finding.certificate
    assert written.claim.split == Split.TEST
    assert written.claim.first_sample == 1, "the first sample is in the report already"
    assert written.claim.replay == "whet certify run-1 --split test --samples 2"
    assert written.played < 60, "it stopped when it was decided"


async def test_what_is_no_better_gets_no_certificate(tmp_path: Path) -> None:
    finding = await attempt(tmp_path, "Be kind to everyone.")
    assert finding.certificate is None
    assert "not shown" in finding.reason
    assert not (tmp_path / "runs" / "run-1" / CERTIFICATE).exists()


async def test_each_attempt_spends_from_one_alpha_and_none_is_made_twice(tmp_path: Path) -> None:
    await attempt(tmp_path, "Be kind.")
    await attempt(tmp_path, "Be brief.", run="run-2")
    await attempt(tmp_path, "Be kind.", samples=3)
    ledger = alphas(tmp_path)
    assert [one.alpha for one in ledger.attempts] == pytest.approx([0.025, 0.0125, 0.00625])
    assert [one.certified for one in ledger.attempts] == [False, False, False]
    with pytest.raises(InputError, match="made already"):
        await attempt(tmp_path, "Be kind.")
    assert alphas(tmp_path) == ledger


async def test_an_attempt_that_was_cut_off_goes_on_with_what_it_was_granted(tmp_path: Path) -> None:
    skill = rule_of("kind0") + "\n" + rule_of("kind1") + "\n" + rule_of("kind2")
    whole = await attempt(tmp_path, skill)
    ledger = alphas(tmp_path)
    cut_off = msgspec.structs.replace(ledger, attempts=(msgspec.structs.replace(ledger.attempts[0], certified=None),))
    (tmp_path / "runs" / ALPHA_FILE).write_bytes(msgspec.json.encode({"simulated": cut_off}))
    assert await attempt(tmp_path, skill) == whole
    assert alphas(tmp_path) == ledger


async def test_a_damaged_ledger_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ALPHA_FILE).write_text("{")
    with pytest.raises(InputError, match=r"alpha\.json cannot be read"):
        await attempt(tmp_path, "Be kind.")
    assert (tmp_path / "runs" / ALPHA_FILE).read_text() == "{"
