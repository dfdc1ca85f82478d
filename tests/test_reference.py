"""Brute-force reference values (enumeration, linear programs, quadrature), each within its tolerance."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from dprisk import (
    GRR,
    OUE,
    SUE,
    ApproxDP,
    Density,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    Line,
    Matrix,
    Mechanism,
    Prior,
    PureDP,
    Ring,
    SubsetSelection,
    Threat,
    assess,
    calibrate,
)
from dprisk.attacks import SimplifiedAttack
from dprisk.attacks.estimate import measure
from dprisk.auditing.certify.counts import Counts, certified_epsilon
from dprisk.auditing.certify.papers import ldp_auditor
from dprisk.bounds import ours, papers, programs
from dprisk.mechanisms import OnInterval, VectorGaussian
from dprisk.population import Targets, leakage, many_targets
from dprisk.population.targets import posteriors
from dprisk.threat import Exact

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


@of_kind("laplace")
def test_laplace_noise_on_points(case: Case) -> None:
    given = case["inputs"]
    noisy_number(case, Laplace(given["points"], scale=given["scale"]))


@of_kind("gaussian")
def test_gaussian_noise_on_points(case: Case) -> None:
    given = case["inputs"]
    noisy_number(case, Gaussian(given["points"], given["sigma"]))


def noisy_number(case: Case, release: Mechanism) -> None:
    given = case["inputs"]
    prior = Prior.uniform(release.size) if given["prior"] == "uniform" else Prior(given["prior"])
    threat = Threat(prior, success=Line(given["eta"], given["points"]))
    assert assess(release, threat).advantage == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("channel")
def test_privacy_of_the_channel(case: Case) -> None:
    channel, expected = mechanism(case["inputs"]["mechanism"], case["inputs"]["params"]), case["expected"]
    assert channel.total_variation == pytest.approx(expected["tv"], abs=case["tol"])
    assert channel.epsilon == pytest.approx(expected["epsilon"], abs=case["tol"])
    assert channel.delta_at(0.5) == pytest.approx(expected["delta_at_half"], abs=case["tol"])


@of_kind("closed_form")
def test_closed_forms_of_the_papers(case: Case) -> None:
    given = case["inputs"]
    name = {"SS": "subset_selection"}.get(given["name"].split("_")[0], given["name"].split("_")[0].lower())
    prior = Prior(given["prior"]) if "prior" in given else Prior.uniform(given["m"])
    risk = assess(mechanism(name, given | {"m": prior.size}), Threat(prior))
    assert risk.exact
    assert risk.advantage == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("bound")
def test_bounds_by_epsilon_and_delta(case: Case) -> None:
    given, expected = case["inputs"], case["expected"]
    epsilon, delta, prior = given["eps"], given["delta"], Prior(given["prior"])
    threat, promise = Threat(prior), ApproxDP(epsilon, delta)
    collide, least, most = prior.collision_probability, threat.kappa_minus, threat.kappa_plus
    size, weights = prior.support_size, prior.sorted_weights
    found = {
        "thm42": papers.rad_theorem_4_2(papers.largest_variation(epsilon, delta), collide),
        "thm51_first": papers.rad_theorem_5_1_first(promise, least, most),
        "thm51_second": papers.rad_theorem_5_1_second(promise, collide, most),
        "prop53": papers.rad_proposition_5_3(epsilon, delta, collide, least, most),
        "lemma54": papers.rad_lemma_5_4(epsilon, delta, size),
        "thm55": papers.rad_theorem_5_5(epsilon, delta, weights),
        "thesis_thm7": papers.thesis_theorem_7(epsilon, delta, weights),
        "wpes_thm72": papers.wpes_theorem_7_2(epsilon, most),
        "wpes_thm73": papers.wpes_theorem_7_3(epsilon, size, least, most),
        "wpes_prop51": papers.wpes_proposition_5_1(epsilon, size, most),
        "balle_kappa_exp": papers.balle_success(epsilon, most),
        "hayes_1_minus_f": papers.hayes_success(promise, most),
        "bwc_beta": papers.posterior(epsilon, most),
        "rad_star": ours.reveal_or_blocks(epsilon, delta, prior),
        "rero_star": ours.worst_top_records(epsilon, delta, prior).success,
        "set_rad": ours.set_advantage(epsilon, delta, collide, threat.ball_masses),
        "universal": ours.universal_advantage(epsilon, delta, collide),
        "aux_rad": ours.knowledge_advantage(epsilon, delta, collide, threat.kappa_aux),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=case["tol"])


@of_kind("bound_gdp")
def test_bounds_by_a_gaussian_curve(case: Case) -> None:
    size, promise = case["inputs"]["m"], GaussianDP(case["inputs"]["mu"])
    second = papers.rad_theorem_5_1_second(promise, 1 / size, 1 / size)
    found = {
        "thm51_first": papers.rad_theorem_5_1_first(promise, 1 / size, 1 / size),
        "thm51_second": second,
        "ex52": second,
        "fixed_point": ours.fixed_point_advantage(promise, size),
    }
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("tight_eta")
def test_worst_mechanism_with_balls(case: Case) -> None:
    given, expected, tolerance = case["inputs"], case["expected"], case["tol"]
    prior, epsilon = Prior(given["prior"]), given["eps"]
    threat = Threat(prior, success=Ring(given["eta"]) if given["loss"] == "ring" else Line(given["eta"]))
    collide = prior.collision_probability
    found = {
        "tight": programs.worst_advantage(epsilon, threat).value,
        "tight_rero": programs.worst_success(epsilon, threat).value,
        "set_rad": ours.set_advantage(epsilon, 0.0, collide, threat.ball_masses),
        "prop53": papers.rad_proposition_5_3(epsilon, 0.0, collide, threat.kappa_minus, threat.kappa_plus),
        "thm42": papers.rad_theorem_4_2(papers.largest_variation(epsilon), collide),
    }
    assert found == pytest.approx({name: expected[name] for name in found}, abs=tolerance)
    first = papers.rad_theorem_5_1_first(PureDP(epsilon), threat.kappa_minus, threat.kappa_plus)
    second = papers.rad_theorem_5_1_second(PureDP(epsilon), collide, threat.kappa_plus)
    assert (first, second) == pytest.approx(tuple(expected["thm51"]), abs=tolerance)


@of_kind("tight_aux")
def test_worst_mechanism_with_knowledge(case: Case) -> None:
    given, expected = case["inputs"], case["expected"]
    prior, epsilon = Prior(given["prior"]), given["eps"]
    threat, collide = Threat(prior, given["aux"]), prior.collision_probability
    found = {
        "tight": programs.worst_advantage(epsilon, threat).value,
        "tight_rero": programs.worst_success(epsilon, threat).value,
        "aux_rad": ours.knowledge_advantage(epsilon, 0.0, collide, threat.kappa_aux),
        "aux_rero": papers.bayes_factor_success(epsilon, threat.kappa_aux),
        "thm42": papers.rad_theorem_4_2(papers.largest_variation(epsilon), collide),
        "universal": ours.universal_advantage(epsilon, 0.0, collide),
    }
    assert found == pytest.approx(expected, abs=case["tol"])


@of_kind("tight_delta")
def test_worst_known_mechanism_with_delta(case: Case) -> None:
    given, expected, prior = case["inputs"], case["expected"], Prior(case["inputs"]["prior"])
    success = ours.worst_top_records(given["eps"], given["delta"], prior).success
    advantage = ours.reveal_or_blocks(given["eps"], given["delta"], prior)
    assert {"rad": advantage, "rero": success} == pytest.approx(expected, abs=case["tol"])


@pytest.mark.slow
@of_kind("calibrate")
def test_calibration(case: Case) -> None:
    given = case["inputs"]
    threat = Threat(Prior.uniform(given["m"]))
    family = Laplace(given["m"], 1.0) if given["name"].startswith("Laplace") else ApproxDP(1.0, given["delta"])
    found = calibrate(family, threat, advantage=given["gamma"])
    assert found.value == pytest.approx(case["expected"], abs=case["tol"])
    if given["name"] == "cor56":
        closed = papers.epsilon_of_corollary_5_6(given["gamma"], given["delta"], given["m"])
        assert closed == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("calibrate_sigma")
def test_calibration_of_full_batch_sgd(case: Case) -> None:
    """The cases are for mu = sqrt(T) / sigma; `calibrate` finds the weakest noise by the tightest bound."""
    given, expected = case["inputs"], case["expected"]
    size, target = given["m"], given["gamma"]

    def sigma(bound: Callable[[GaussianDP], float]) -> float:
        return math.sqrt(given["T"]) / float(brentq(lambda mu: bound(GaussianDP(mu)) - target, 1e-9, 50, xtol=1e-13))

    second = sigma(lambda it: papers.rad_theorem_5_1_second(it, 1 / size, 1 / size))
    found = calibrate(GaussianDP(1.0), Threat(Prior.uniform(size)), advantage=target)
    told = {
        "ex52": second,
        "thm51_best": min(second, sigma(lambda it: papers.rad_theorem_5_1_first(it, 1 / size, 1 / size))),
        "fixed_point": math.sqrt(given["T"]) / found.value,
        "thm42": sigma(lambda it: papers.rad_theorem_4_2(it.total_variation, 1 / size)),
    }
    assert told == pytest.approx(expected, abs=case["tol"])


@pytest.mark.slow
@of_kind("dpsgd_attack")
def test_attacks_on_dp_sgd(case: Case) -> None:
    """The cases are Monte Carlo values with a standard error of tol / 5; ours here is smaller."""
    given, expected = case["inputs"], case["expected"]
    release, threat = (
        VectorGaussian(given["means"], given["sigma"]),
        Threat(Prior.uniform(given["m"]), given["aux_labels"]),
    )
    rng = np.random.default_rng(7)
    found = {
        "exact": assess(release, threat, runs=1 << 18, seed=rng).advantage,
        "simplified": measure(SimplifiedAttack(release, threat), release, threat, rng).advantage,
        "simplified_with_norms": measure(SimplifiedAttack(release, threat, norms=True), release, threat, rng).advantage,
    }
    assert found == pytest.approx(expected, abs=case["tol"])


@pytest.mark.slow
@of_kind("expmech_continuous")
def test_the_exponential_mechanism_on_an_interval(case: Case) -> None:
    given, (low, high) = case["inputs"], case["inputs"]["interval"]
    assert given["prior"] == "uniform"
    mechanism = OnInterval.exponential(given["eps"], low, high, given["sens"])
    lower, upper = assess(mechanism, Threat.reconstruction(Density.uniform(low, high), given["eta"])).advantage_interval
    assert lower - case["tol"] <= case["expected"] <= upper + case["tol"]


@of_kind("audit")
def test_certificates_of_audits(case: Case) -> None:
    given = case["inputs"]
    if given["method"] == "rad":
        found = certified_epsilon(Counts(given["n"], given["n"], given["k"], given["m"]), given["alpha"])
    else:
        found = ldp_auditor(given["tp"], given["fp"], given["n"], given["alpha"])
    assert found == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("bits")
def test_bits_leaked(case: Case) -> None:
    bits = leakage.bits_leaked(case["inputs"]["eps"], case["inputs"]["alpha"])
    assert bits == pytest.approx(case["expected"], abs=case["tol"])


@of_kind("eps_protect")
def test_epsilon_to_protect(case: Case) -> None:
    given, expected = case["inputs"], case["expected"]
    epsilon = leakage.epsilon_to_protect(given["prior"], given["advantage"], given["delta"])
    success = papers.bayes_factor_success(1.0, given["prior"], given["delta"])
    assert epsilon == pytest.approx(expected["eps"], abs=case["tol"])
    advantage = leakage.generalised_advantage(success, given["prior"])
    assert advantage == pytest.approx(expected["adv_at_1"], abs=case["tol"])


@of_kind("multi_target")
def test_many_targets(case: Case) -> None:
    """The value of Theorem 3.5 is that of the printed formula, which is no bound: `with_delta` takes its place."""
    given, expected, tolerance = case["inputs"], case["expected"], case["tol"]
    epsilon, delta, wanted = given["eps"], given["delta"], given["v"]
    targets = Targets(np.broadcast_to(given["prior_success"], given["n"]))
    found = {
        "tail": math.exp(many_targets.theorem_3_2(epsilon, targets, wanted)),
        "thm35": many_targets.theorem_3_5(epsilon, delta, targets, wanted),
        "cor34": many_targets.corollary_3_4(epsilon, delta, targets, wanted),
        "beta": float(posteriors(epsilon, targets.baselines)[0]),
    }
    told = {name: value for name, value in expected.items() if name in found}
    assert {name: found[name] for name in told} == pytest.approx(told, abs=tolerance, rel=1e-10)
    if "alpha" in expected and delta > 0:
        slope = (found["thm35"] - found["tail"]) / (given["n"] * delta)
        assert slope == pytest.approx(expected["alpha"], abs=tolerance, rel=1e-9)
