"""What an audit says where it cannot go on."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dprisk import GRR, OUE, Gaussian, Laplace, Mechanism, audit
from dprisk.cli.main import cli
from dprisk.errors import InputFileError, ParameterError, TargetError

PAIR = Laplace(2, epsilon=0.5)


def noisy(record: float, rng: np.random.Generator) -> float:
    return record + rng.laplace(scale=2.0)


def halved(record: float, rng: np.random.Generator) -> float:
    return record + rng.laplace(scale=1.0)


@pytest.mark.parametrize("family", [GRR(2, epsilon=1.0), OUE(2, epsilon=1.0)])
def test_outputs_that_the_family_never_has_are_named(family: Mechanism) -> None:
    with pytest.raises(TargetError, match=r"such as -?\d.*none of .*leave out `family`"):
        audit(noisy, 1.0, records=[0, 1], runs=100, family=family)


def test_code_that_cannot_be_sent_to_a_process_is_told_what_to_do() -> None:
    with pytest.raises(TargetError, match=r"package\.module:function.*n_jobs=1"):
        audit(lambda record, rng: record, 1.0, records=[0, 1], runs=100, n_jobs=2)


def test_a_store_of_other_code_is_refused(tmp_path: Path) -> None:
    audit(halved, 0.5, records=[0, 1], runs=2000, family=PAIR, store=tmp_path / "runs", seed=3)
    halved_again = audit(halved, 0.5, records=[0, 1], runs=2000, family=PAIR, store=tmp_path / "runs", seed=3)
    assert halved_again.counts.runs == 2000

    def fixed(record: float, rng: np.random.Generator) -> float:
        return noisy(record, rng)

    fixed.__module__, fixed.__qualname__ = halved.__module__, halved.__qualname__
    with pytest.raises(InputFileError, match="another audit"):
        audit(fixed, 0.5, records=[0, 1], runs=2000, family=PAIR, store=tmp_path / "runs", seed=3)


def test_code_that_cannot_be_seeded_needs_a_family_to_be_stored(tmp_path: Path) -> None:
    import secrets

    def coin(record: int) -> int:
        return record if secrets.randbelow(4) else 1 - record

    with pytest.raises(ParameterError, match="cannot be seeded"):
        audit(coin, 2.0, records=[0, 1], runs=100, store=tmp_path / "runs")
    for _ in range(2):
        told = audit(coin, 2.0, records=[0, 1], runs=1000, store=tmp_path / "runs", family=GRR(2, epsilon=2.0))
    assert told.counts.runs == 1000


def test_a_delta_without_a_claim_is_not_ignored() -> None:
    result = CliRunner().invoke(
        cli, ["audit", "--mechanism", "grr", "--epsilon", "1", "--size", "5", "--delta", "1e-5"]
    )
    assert result.exit_code != 0
    assert "--claim" in result.output + str(result.exception)


def test_a_mechanism_without_a_pure_epsilon_asks_for_a_delta() -> None:
    with pytest.raises(ParameterError, match="ApproxDP"):
        audit(Gaussian(2, sigma=1.0), runs=100)


@pytest.mark.parametrize("option", [["--runs", "5"], ["--stop-early"], ["--epsilon", "2"], ["--size", "3"]])
def test_options_without_meaning_for_recorded_runs_are_refused(option: list[str]) -> None:
    given = ["audit", "--outputs", "docs/examples/reports.csv", "--claim", "1", *option]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code not in (0, 1) or result.exception
    assert option[0] in result.output + str(result.exception)


def test_parameters_and_post_reach_the_code() -> None:
    def noise(record: float, scale: float, rng: np.random.Generator) -> list[float]:
        return [record + rng.laplace(scale=scale)]

    report = audit(
        noise, 0.5, records=[0, 1], runs=5000, parameters={"scale": 0.1}, post=lambda output: output[0] > 0.5
    )
    assert report.verdict == "violated"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("digits", [1, 12])
def test_a_leak_through_what_is_no_number_is_found(odd: float, digits: int) -> None:
    """One record fails half of the time, the other never: no epsilon holds."""

    def fails(record: int, rng: np.random.Generator) -> float:
        return odd if record and rng.random() < 0.5 else round(rng.normal(), digits)

    assert audit(fails, 2.0, records=[0, 1], runs=2000).epsilon_certified > 4
