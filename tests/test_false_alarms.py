"""Audits of code whose epsilon is exactly its claim: a small version of `benchmarks/false_alarms.py`."""

import pytest

from benchmarks.false_alarms import ALPHAS, Setting, by_module, fails, flipped, most, once, rates, settings
from dprisk.auditing import Running
from dprisk.guarantees import ApproxDP

AUDITS, QUARTER = 40, ApproxDP(0.25, 0.0)
SMALL = ("once: delta 0.05", "watched: last_bits", "watched: its family", "resumed: cannot be seeded", "recorded")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_alarms_are_as_rare_as_alpha_says(name: str) -> None:
    (setting,) = (one for one in settings() if one.name == name)
    audits = AUDITS // 4 if name.startswith("resumed") else AUDITS
    assert all(share <= most(alpha, audits) for share, alpha in zip(rates(setting, audits), ALPHAS, strict=True))


def test_every_row_of_the_benchmark_has_a_name_of_its_own() -> None:
    names = [setting.name for setting in settings()]
    assert len(names) == len(set(names))


def test_the_benchmark_can_tell() -> None:
    """Code that breaks its claim is found out, so that a small rate means something."""
    assert rates(Setting("randomised response at 1, said to be 0.25", once, flipped, claim=QUARTER), 4) == [1.0, 1.0]
    assert rates(Setting("exceptions", once, fails, claim=QUARTER), 4) == [1.0, 1.0]


@pytest.mark.slow
def test_workers_that_were_forked_do_not_share_noise_that_nobody_found() -> None:
    setting = Setting("forked", once, by_module, runs=8000, running=Running(n_jobs=8))
    assert rates(setting, 2)[1] == 0
