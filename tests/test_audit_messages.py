"""What an audit says where it cannot go on."""

import hashlib
import json
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dprisk import GRR, OUE, Gaussian, Laplace, Mechanism, Prior, Threat, audit
from dprisk.auditing import Look, Running, as_target, central
from dprisk.cli import command
from dprisk.errors import AuditedCodeError, DpriskError, InputFileError, ParameterError, TargetError
from dprisk.testing import assert_private
from dprisk.types import AnyArray

PAIR = Laplace(2, epsilon=0.5)


def noisy(record: float, rng: np.random.Generator) -> float:
    return record + rng.laplace(scale=2.0)


def halved(record: float, rng: np.random.Generator) -> float:
    return record + rng.laplace(scale=1.0)


@pytest.mark.parametrize("family", [GRR(2, epsilon=1.0), OUE(2, epsilon=1.0)])
def test_outputs_that_the_family_never_has_are_named(family: Mechanism) -> None:
    with pytest.raises(TargetError, match=r"such as -?\d.*none of .*leave out `family`"):
        audit(noisy, 1.0, records=[0, 1], runs=100, look=Look(family=family))


def test_code_that_cannot_be_sent_to_a_process_is_told_what_to_do() -> None:
    with pytest.raises(TargetError, match=r"package\.module:function.*n_jobs=1"):
        audit(lambda record, rng: record, 1.0, records=[0, 1], runs=100, running=Running(n_jobs=2))


def test_a_store_of_other_code_is_refused(tmp_path: Path) -> None:
    audit(
        halved, 0.5, records=[0, 1], runs=2000, seed=3, look=Look(family=PAIR), running=Running(store=tmp_path / "runs")
    )
    halved_again = audit(
        halved, 0.5, records=[0, 1], runs=2000, seed=3, look=Look(family=PAIR), running=Running(store=tmp_path / "runs")
    )
    assert halved_again.counts.runs == 2000

    def fixed(record: float, rng: np.random.Generator) -> float:
        return noisy(record, rng)

    fixed.__module__, fixed.__qualname__ = halved.__module__, halved.__qualname__
    with pytest.raises(InputFileError, match="another audit"):
        audit(
            fixed,
            0.5,
            records=[0, 1],
            runs=2000,
            seed=3,
            look=Look(family=PAIR),
            running=Running(store=tmp_path / "runs"),
        )


def test_code_that_cannot_be_seeded_is_stored(tmp_path: Path) -> None:
    import secrets

    def coin(record: int) -> int:
        return record if secrets.randbelow(4) else 1 - record

    for _ in range(2):
        told = audit(
            coin,
            2.0,
            records=[0, 1],
            runs=1000,
            look=Look(family=GRR(2, epsilon=2.0)),
            running=Running(store=tmp_path / "runs"),
        )
    assert told.counts.runs == 1000


def test_a_delta_without_a_claim_is_not_ignored() -> None:
    result = CliRunner().invoke(
        command(), ["audit", "--mechanism", "grr", "--epsilon", "1", "--size", "5", "--delta", "1e-5"]
    )
    assert result.exit_code != 0
    assert "--claim" in result.output + str(result.exception)


def test_a_mechanism_without_a_pure_epsilon_asks_for_a_delta() -> None:
    with pytest.raises(ParameterError, match=r"claim=\(1.0, 1e-5\)"):
        audit(Gaussian(2, sigma=1.0), runs=100)


@pytest.mark.parametrize("option", [["--runs", "5"], ["--stop-early"], ["--epsilon", "2"], ["--size", "3"]])
def test_options_without_meaning_for_recorded_runs_are_refused(option: list[str]) -> None:
    given = ["audit", "--outputs", "docs/examples/reports.csv", "--claim", "1", *option]
    result = CliRunner().invoke(command(), given)
    assert result.exit_code not in (0, 1) or result.exception
    assert option[0] in result.output + str(result.exception)


def test_parameters_and_post_reach_the_code() -> None:
    def noise(record: float, scale: float, rng: np.random.Generator) -> list[float]:
        return [record + rng.laplace(scale=scale)]

    report = audit(
        as_target(noise, [0, 1], parameters={"scale": 0.1}, post=lambda output: output[0] > 0.5), 0.5, runs=5000
    )
    assert report.verdict == "violated"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("digits", [1, 12])
def test_a_leak_through_what_is_no_number_is_found(odd: float, digits: int) -> None:
    """One record fails half of the time, the other never: no epsilon holds."""

    def fails(record: int, rng: np.random.Generator) -> float:
        return odd if record and rng.random() < 0.5 else round(rng.normal(), digits)

    assert audit(fails, 2.0, records=[0, 1], runs=2000).epsilon_certified > 4


@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: str(record + rng.laplace()),
        lambda record, rng: (record, str(rng.laplace())),
        lambda record, rng: {"mean": [record + rng.laplace()], "unit": "m"},
        lambda record, rng: json.dumps({"mean": record + rng.laplace(), "n": 3}),
    ],
    ids=["text", "tuple", "dict", "json"],
)
def test_numbers_are_read_in_whatever_holds_them(code: Callable[..., Any]) -> None:
    """Each of these gives the record away, and counting whole outputs would not show it."""
    assert audit(code, 1.0, records=[0, 5], runs=2000).verdict == "violated"
    assert audit(code, 1.0, records=[0, 5], runs=2000, threat=Threat(Prior.uniform(2))).verdict == "violated"


def test_outputs_that_never_repeat_are_not_called_consistent() -> None:
    def code(record: int, rng: np.random.Generator) -> bytes:
        return hashlib.sha256(bytes([record]) + rng.bytes(8)).digest()

    report = audit(code, 1.0, records=[0, 5], runs=1000)
    assert report.verdict == "undecided"
    assert "nothing to go by; give it numbers to look at with post=" in report.sentence()
    with pytest.raises(TargetError, match=r"No two outputs .* are alike, such as .* Return floats"):
        audit(code, 1.0, records=[0, 5], runs=1000, threat=Threat(Prior.uniform(2)))


@pytest.mark.parametrize("odd", [None, "failed", (1, 2)])
def test_what_is_no_number_among_floats_hides_nothing(odd: Any) -> None:
    """The numbers tell the record, and some are withheld for both records alike."""

    def withheld(record: int, rng: np.random.Generator) -> Any:
        return odd if rng.random() < 0.2 else 10 * record + rng.laplace()

    assert audit(withheld, 1.0, records=[0, 1], runs=2000).epsilon_certified > 4


def test_a_tuple_of_floats_that_never_repeats_is_a_vector() -> None:
    def pair(record: int, rng: np.random.Generator) -> tuple[float, float]:
        return rng.laplace(), 10 * record + rng.laplace()

    assert audit(pair, 1.0, records=[0, 1], runs=2000).epsilon_certified > 4


def test_the_output_that_a_family_does_not_have_is_shown() -> None:
    def fails(record: int, rng: np.random.Generator) -> float:
        return np.nan if rng.random() < 0.2 else noisy(record, rng)

    with pytest.raises(TargetError, match=r"such as nan, are none of Laplace"):
        audit(fails, 0.5, records=[0, 1], runs=2000, look=Look(family=PAIR))


@pytest.mark.slow
def test_long_text_is_compared_by_a_digest() -> None:
    def letter(record: int, rng: np.random.Generator) -> str:
        return "x" * 200_000 + str(record if rng.random() < 0.9 else 1 - record)

    assert audit(letter, 1.0, records=[0, 1], runs=500).verdict == "violated"


@pytest.mark.parametrize("family", [None, PAIR])
def test_a_batch_that_shares_its_noise_is_refused(family: Mechanism | None) -> None:
    def shared(records: AnyArray, rng: np.random.Generator) -> AnyArray:
        return records + rng.laplace(scale=2.0)  # one number for all

    with pytest.raises(TargetError, match=r"same noise.*not independent.*leave out batch"):
        audit(as_target(shared, [0, 1], batch=True), 0.5, runs=2000, look=Look(family=family))


@pytest.mark.parametrize("constant", [True, False])
def test_a_batch_without_noise_or_with_little_is_not_taken_to_share_it(constant: bool) -> None:
    def rare(records: AnyArray, rng: np.random.Generator) -> AnyArray:
        return records * 0 if constant else np.where(rng.random(len(records)) < 0.02, 1, 0)

    assert audit(as_target(rare, [0, 1], batch=True), 0.5, runs=2000).verdict != "violated"


async def later(record: int) -> int:
    return record


class Later:
    async def __call__(self, record: int) -> int:
        return record


@pytest.mark.parametrize("code", [later, Later(), partial(later)])
def test_async_code_is_told_what_to_do(code: Any) -> None:
    with pytest.raises(TargetError, match=r"async function.*asyncio\.run"):
        audit(code, 1.0, records=[0, 1], runs=100)


class Oriented:
    def report(self, record: int, rng: np.random.Generator) -> float:
        return record + rng.laplace()


def fails(record: int, rng: np.random.Generator) -> float:
    try:
        return 1 / record
    except ZeroDivisionError as problem:
        raise ValueError("a record of 0") from problem


def test_what_fails_in_a_test_suite_is_shown_without_the_inside_of_dprisk() -> None:
    with pytest.raises(AuditedCodeError, match="a record of 0") as error:
        assert_private(fails, 1.0, [0, 1])
    assert len(error.traceback) == 2
    cause = error.value.__cause__
    assert [type(problem) for problem in (cause, cause and cause.__context__)] == [ValueError, ZeroDivisionError]
    assert cause is not None
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["fails"]
    assert "auditing" not in "".join(traceback.format_exception(error.value))


def test_a_method_of_a_binding_has_its_own_name() -> None:
    def add_noise(record: float) -> float:
        return record

    add_noise.__qualname__ = "pybind11_detail_function_record_v1_system.add_noise"
    assert as_target(add_noise, [0.0, 1.0]).name == "add_noise"


@pytest.mark.parametrize(
    ("code", "first"),
    [(lambda rng, record: record, "rng"), (Oriented.report, "self; name a method of an object, as in mech:obj.meth")],
)
def test_what_stands_where_the_record_belongs_is_named(code: Callable[..., Any], first: str) -> None:
    with pytest.raises(TargetError, match=f"record as its first argument: its first parameter is {first}"):
        audit(code, 1.0, records=[0, 1], runs=100)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (lambda: as_target(noisy, 2, parameters=[1]), r"parameters is a mapping.*not \[1\]"),  # type: ignore[arg-type]
        (lambda: as_target(noisy, 10**9), "1000000000 possible records are too many to list"),
        (lambda: as_target(noisy, 2, post=5), "post is a function of one output, not 5"),  # type: ignore[arg-type]
        (lambda: as_target(noisy, 2, timeout=1e-9), "from 0.01 to 1e.08, got 1e-09"),
        (lambda: Look(family="laplace"), r"family is a mechanism, as in Laplace.*not 'laplace'"),  # type: ignore[arg-type]
        (lambda: Look(family=Laplace), "family is a mechanism"),  # type: ignore[arg-type]
        (lambda: Running(n_jobs=0), "n_jobs must be a whole number of at least 1"),
        (lambda: Running(store=5), "store is the name of a file.*not 5"),  # type: ignore[arg-type]
        (lambda: Running(timeout=1e-9), "from 0.01 to 1e.08, got 1e-09"),
        (lambda: Running(timeout=1e300), "from 0.01 to 1e.08, got 1e.300"),
    ],
)
def test_options_of_the_wrong_kind_are_named(options: Callable[[], object], said: str) -> None:
    with pytest.raises(DpriskError, match=said):
        options()


def test_a_time_limit_of_the_run_is_that_of_code_in_any_form() -> None:
    slow = Running(timeout=7.0)
    for subject in (
        as_target(noisy, 2),
        as_target(noisy, 2, timeout=3.0),
        central(lambda data, rng: data[0], [], [0, 1]),
    ):
        assert audit(subject, 0.5, runs=100, running=slow).target["timeout"] == 7.0
    assert audit(as_target(noisy, 2, timeout=3.0), 0.5, runs=100).target["timeout"] == 3.0
    for mechanism in (GRR(2, epsilon=1.0), as_target(GRR(2, epsilon=1.0))):
        with pytest.raises(TargetError, match=r"GRR.* has no calls to limit.*leave out timeout"):
            audit(mechanism, runs=100, running=slow)


def test_an_error_of_several_lines_is_told_in_one() -> None:
    def fails(record: int) -> int:
        raise ValueError("one\n  two")

    with pytest.raises(AuditedCodeError, match="ValueError: one two "):
        audit(fails, 1.0, records=[0, 1], runs=100)


def test_the_data_of_the_others_are_a_list() -> None:
    with pytest.raises(TargetError, match="not a NoneType"):
        central(lambda data: 1.0, None, records=[0, 1])  # type: ignore[arg-type]


class Attack:
    """Guesses what it is told, and takes no `known`."""

    def __init__(self, rule: Callable[[AnyArray], Any]) -> None:
        self.rule = rule

    def guess(self, outputs: AnyArray, rng: np.random.Generator) -> Any:
        return self.rule(outputs)


def coin(record: int, rng: np.random.Generator) -> int:
    return int(record if rng.random() < 0.9 else 1 - record)


@pytest.mark.parametrize("threat", [None, Threat(Prior.uniform(2))], ids=["suspects", "threat"])
def test_an_attack_on_somebody_of_whom_nothing_is_known_needs_no_parameter_for_it(threat: Threat | None) -> None:
    report = audit(
        coin, 1.0, records=[0, 1], runs=1000, threat=threat, look=Look(scorer=Attack(lambda outputs: outputs))
    )
    assert report.verdict == "violated"


def test_an_attack_that_ignores_what_is_known_is_told_so() -> None:
    given = Threat(Prior.uniform(2), knows="all")
    with pytest.raises(ParameterError, match=r"Attack\.guess takes no third argument `known`"):
        audit(coin, 1.0, records=[0, 1], runs=1000, threat=given, look=Look(scorer=Attack(lambda outputs: outputs)))


@pytest.mark.parametrize(
    "rule",
    [
        lambda outputs: outputs[:3],
        lambda outputs: 0,
        lambda outputs: None,
        lambda outputs: outputs + 0.5,
        lambda outputs: outputs.astype(str),
        lambda outputs: outputs[:, None],
    ],
    ids=["short", "one", "none", "half", "text", "column"],
)
@pytest.mark.parametrize("threat", [None, Threat(Prior.uniform(2))], ids=["suspects", "threat"])
def test_guesses_that_are_no_records_are_refused(rule: Callable[[AnyArray], Any], threat: Threat | None) -> None:
    with pytest.raises(ParameterError, match="An attack must guess one record"):
        audit(coin, 1.0, records=[0, 1], runs=1000, threat=threat, look=Look(scorer=Attack(rule)))


def test_a_class_is_no_scorer() -> None:
    with pytest.raises(ParameterError, match="a class: give an object of it"):
        audit(coin, 1.0, records=[0, 1], runs=1000, look=Look(scorer=Attack))


def test_an_assertion_that_cannot_fail_is_refused() -> None:
    """Three right answers of three refute no epsilon of 1 at one in a thousand."""
    with pytest.raises(AssertionError, match=r"Undecided: 3 runs of coin do not settle"):
        assert_private(coin, epsilon=1.0, records=[0, 1], runs=3)
    assert assert_private(coin, epsilon=3.0, records=[0, 1], runs=2000).verdict == "consistent with the claim"
