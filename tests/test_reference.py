"""Brute-force reference values (enumeration, quadrature), each within its tolerance."""

import json
from pathlib import Path
from typing import Any

import pytest

from dprisk import (
    GRR,
    OUE,
    SUE,
    Exact,
    Exponential,
    Gaussian,
    Laplace,
    Line,
    Matrix,
    Mechanism,
    Prior,
    SubsetSelection,
    Threat,
    assess,
)

CASES = json.loads(Path(__file__).with_name("reference_values.json").read_text())["cases"]
Case = dict[str, Any]


def of_kind(kind: str) -> pytest.MarkDecorator:
    cases = [case for case in CASES if case["kind"] == kind]
    assert cases
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def mechanism(name: str, given: Case) -> Mechanism:
    size = given["m"]
    match name:
        case "grr":
            return GRR(size, given["eps"])
        case "oue":
            return OUE(size, given["eps"])
        case "sue":
            return SUE(size, given["eps"])
        case "subset_selection":
            return SubsetSelection(size, given["eps"], given["omega"])
        case "exp_mechanism_abs":
            return Exponential.on_line(size, given["eps"])
        case "laplace":
            return Laplace(size, given["eps"])
        case "gaussian":
            return Gaussian(size, given["sigma"])
        case _:
            return Matrix(given["P"])


@of_kind("exact")
def test_exact_optimum(case: Case) -> None:
    given, expected = case["inputs"], case["expected"]
    success = Exact() if given["loss"] == "zero_one" else Line(given["eta"])
    threat = Threat(Prior(given["prior"]), given["aux"], success)
    risk = assess(mechanism(given["mechanism"], given["params"]), threat)
    assert risk.exact
    assert risk.advantage == pytest.approx(expected["rad"], abs=case["tol"])
    assert risk.success == pytest.approx(expected["rero"], abs=case["tol"])
    assert threat.kappa_aux == pytest.approx(expected["kappa_aux"], abs=case["tol"])


@of_kind("channel")
def test_privacy_of_the_channel(case: Case) -> None:
    channel, expected = mechanism(case["inputs"]["mechanism"], case["inputs"]["params"]), case["expected"]
    assert channel.total_variation == pytest.approx(expected["tv"], abs=case["tol"])
    assert channel.epsilon == pytest.approx(expected["epsilon"], abs=case["tol"])
    assert channel.delta(0.5) == pytest.approx(expected["delta_at_half"], abs=case["tol"])


@of_kind("closed_form")
def test_closed_forms_of_the_papers(case: Case) -> None:
    given = case["inputs"]
    name = {"SS": "subset_selection"}.get(given["name"].split("_")[0], given["name"].split("_")[0].lower())
    prior = Prior(given["prior"]) if "prior" in given else Prior.uniform(given["m"])
    risk = assess(mechanism(name, given | {"m": prior.size}), Threat(prior))
    assert risk.exact
    assert risk.advantage == pytest.approx(case["expected"], abs=case["tol"])
