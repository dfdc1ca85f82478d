"""Libraries that nobody here wrote, audited by default settings: the table of docs/found-in-the-wild.md.

    python benchmarks/libraries.py [NAME ...]

Each row is one audit: the library, what was audited, the claim, the verdict, the certified epsilon, the same without a
look at the last bits of floats (which tells floating point from other causes), and the time. A finding has its witness
below it, and an independent count: an event that was named before, in fresh runs of both records. A library that is not
installed is named and left out. Rows that differ from what is known say so.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dprisk.auditing import AuditReport, Look, as_target, audit, central
from dprisk.auditing.code.adapters import multi_freq_ldpy, opendp, pure_ldp
from dprisk.auditing.code.target import Target, version_of
from dprisk.errors import TargetError
from dprisk.guarantees import GaussianDP
from dprisk.types import AnyArray

COUNTED = 3000  # fresh runs of each record for an independent count
HINT = "; diffprivlib 0.6.6 needs scikit-learn<1.8"
FLAW, FLOATS, CONVENTION, NONE = "flaw", "floating point", "another convention", "none"


@dataclass(frozen=True)
class Case:
    """One audit. `cause` is what a finding is due to, `event` what is counted independently, in words and as a test.

    The claim is that of the target where it has one.
    """

    library: str
    name: str
    target: Callable[[], Target]
    claim: Any = None
    cause: str = NONE
    event: tuple[str, Callable[[Any], bool]] | None = None
    runs: int = 20_000


def diffprivlib_flaws() -> Iterator[Case]:
    from diffprivlib import models, tools
    from diffprivlib.mechanisms import Geometric

    bounds = {"epsilon": 1.0, "bounds": (0, 1)}
    nan = math.nan

    def regression() -> Target:
        model = models.LinearRegression(epsilon=1.0, bounds_X=(0, 10), bounds_y=(0, 1), fit_intercept=False)
        return central(model, np.ones((3, 2)), [[0.0, 0.0], [10.0, 1.0]])

    yield Case(
        "diffprivlib",
        "LinearRegression, bounds_X=(0, 10), no intercept",
        regression,
        cause=FLAW,
        event=("|coef| > 3", lambda output: abs(dict(output)["coef_"]) > 3),
    )
    yield Case(
        "diffprivlib",
        "nanmean, 9 of 10 are NaN",
        lambda: central(tools.nanmean, np.array([nan] * 9), [0.0, 1.0], parameters=bounds),
        1.0,
        FLAW,
        ("output > 1/2", lambda output: output > 0.5),
    )
    yield Case(
        "diffprivlib",
        "nanvar, 8 of 10 are NaN",
        lambda: central(tools.nanvar, np.array([0.0] + [nan] * 8), [0.0, 1.0], parameters=bounds),
        1.0,
        FLAW,
        ("output > 0.2", lambda output: output > 0.2),
    )
    yield Case(
        "diffprivlib",
        "nansum, bounds=(8, 9), the record may be NaN",
        lambda: central(tools.nansum, np.full(9, 9.0), [nan, 9.0], parameters={"epsilon": 1.0, "bounds": (8, 9)}),
        1.0,
        FLAW,
        ("output > 86", lambda output: output > 86),
    )

    def weighted(data: AnyArray, random_state: Any) -> Any:
        places, weights = data.T
        return tools.histogram(places, bins=2, range=(0, 1), weights=weights, random_state=random_state)[0]

    yield Case(
        "diffprivlib",
        "histogram with weights, one weighs 1 or 10",
        lambda: central(weighted, np.array([[0.2, 1.0], [0.7, 1.0]]), [[0.2, 1.0], [0.2, 10.0]]),
        2.0,
        FLAW,
        ("first bin > 6", lambda output: output[0] > 6),
    )

    def automatic(data: AnyArray, random_state: Any) -> Any:
        return tools.histogram(data, bins="auto", range=(0, 1), random_state=random_state)[0]

    yield Case(
        "diffprivlib",
        'histogram with bins="auto"',
        lambda: central(automatic, np.linspace(0, 0.1, 10), [0.05, 1.0]),
        2.0,
        FLAW,
        ("at most 8 bins", lambda output: len(output) <= 8),
    )
    large = 2**60 + 128  # half way between two floats
    yield Case(
        "diffprivlib",
        "Geometric at 2^60 + 128 and 129",
        lambda: as_target(Geometric(epsilon=1.0, sensitivity=1, random_state=0), [large, large + 1]),
        cause=FLAW,
        event=("output > 2^60", lambda output: output > 2**60),
    )


def diffprivlib_floats() -> Iterator[Case]:
    from diffprivlib import tools
    from diffprivlib.mechanisms import Gaussian, Laplace, LaplaceBoundedDomain

    fine = ("a multiple of 2^-54 but not of 2^-53", lambda output: (output * 2.0**54) % 2 == 1)
    kind = {"sensitivity": 1, "random_state": 0}
    for name, mechanism in (
        ("Laplace", Laplace(epsilon=1.0, **kind)),
        ("LaplaceBoundedDomain", LaplaceBoundedDomain(epsilon=1.0, lower=0, upper=1, **kind)),
        ("Gaussian", Gaussian(epsilon=0.9, delta=0.01, **kind)),
    ):
        yield Case("diffprivlib", name, partial(as_target, mechanism, [0.0, 1.0]), None, FLOATS, fine)
    yield Case(
        "diffprivlib",
        "mean of 10",
        lambda: central(tools.mean, np.full(9, 0.5), [0.0, 1.0], parameters={"epsilon": 1.0, "bounds": (0, 1)}),
        1.0,
        FLOATS,
        ("the last bit is below 2^-54", lambda output: output * 2.0**54 % 1 != 0),
    )


def diffprivlib_others() -> Iterator[Case]:
    from diffprivlib import tools
    from diffprivlib.mechanisms import (
        Binary,
        Exponential,
        GaussianDiscrete,
        Geometric,
        GeometricFolded,
        GeometricTruncated,
        PermuteAndFlip,
        Snapping,
    )

    kind = {"epsilon": 1.0, "random_state": 0}
    whole: dict[str, Any] = kind | {"sensitivity": 1}
    for mechanism, records in (
        (Binary(value0="no", value1="yes", **kind), ["no", "yes"]),
        (Geometric(**whole), [0, 1]),
        (GeometricTruncated(lower=0, upper=3, **whole), [0, 1]),
        (GeometricFolded(lower=0, upper=3, **whole), [0, 1]),
        (GaussianDiscrete(delta=0.01, **whole), [0, 1]),
        (Snapping(lower=-10, upper=10, **whole), [0.0, 1.0]),
        (Exponential(utility=[0.0, 0.0, 0.0], **whole), [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
        (PermuteAndFlip(utility=[0.0, 0.0, 0.0], **whole), [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
    ):
        name = type(mechanism).__name__
        yield Case("diffprivlib", name, partial(as_target, mechanism, records), runs=100_000)

    def histogram(data: AnyArray, random_state: Any) -> Any:
        return tools.histogram(data, bins=4, range=(0, 1), random_state=random_state)[0]

    place = central(histogram, np.linspace(0, 1, 10), [0.05, 1.0])
    yield Case("diffprivlib", "histogram, one record replaced", lambda: place, 2.0)
    yield Case(
        "diffprivlib",
        "the same held to epsilon, not 2 epsilon",
        lambda: place,
        1.0,
        CONVENTION,
        ("first bin larger than the last", lambda output: output[0] > output[-1]),
    )


def eeprivacy() -> Iterator[Case]:
    from eeprivacy.operations import PrivateClampedMean, PrivateVectorClampedMeanLaplace

    two_entries = [[0.5, 0.5]] * 9, [[0.0, 1.0], [1.0, 0.0]]

    def mean(data: list[float]) -> float:
        return float(PrivateClampedMean(lower_bound=0, upper_bound=1).execute(values=data, epsilon=1.0))

    yield Case(
        "eeprivacy",
        "ClampedMean on [0, 1], one record is 5",
        lambda: central(mean, [0.5] * 9, [0.0, 5.0]),
        1.0,
        FLAW,
        ("output = 1", lambda output: output == 1),
    )
    vectors = PrivateVectorClampedMeanLaplace(lower_bound=0, upper_bound=1, k=2, N=10)
    yield Case(
        "eeprivacy",
        "VectorClampedMeanLaplace on [0, 1], two entries",
        lambda: central(lambda data: vectors.execute(vectors=data, epsilon=1.0, delta=0.0), *two_entries),
        1.0,
        FLAW,
        ("first above second", lambda output: output[0] > output[1]),
    )


def flower() -> Iterator[Case]:
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    def aggregate(clients: list[tuple[float, int]]) -> float:
        strategy: Any = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 2.0, 1.0, len(clients))
        strategy.current_round_params = [np.zeros(1)]
        results: list[Any] = [
            (None, FitRes(Status(Code.OK, ""), ndarrays_to_parameters([np.array([update])]), examples, {}))
            for update, examples in clients
        ]
        return float(parameters_to_ndarrays(strategy.aggregate_fit(1, results, [])[0])[0][0])

    others = [(0.5, 10)] * 9
    yield Case(
        "flwr",
        "server-side fixed clipping, FedAvg, clients of 10 and 1,000 examples",
        lambda: central(aggregate, others, [(-1.0, 1000), (1.0, 1000)]),
        GaussianDP(1.0),  # two clipped updates are 2/n apart, the noise has a deviation of 2/n
        FLAW,
        ("output > 0", lambda output: output > 0),
    )
    yield Case(
        "flwr",
        "the same with equal clients, rounded to 2^-10",
        lambda: central(aggregate, others, [(-1.0, 10), (1.0, 10)], post=lambda output: round(output * 1024) / 1024),
        GaussianDP(1.0),
    )


def opendp_measurements() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    numbers = dp.atom_domain(T=float, nan=False)
    vectors = dp.vector_domain(numbers)
    table: Any = dp.vector_domain(dp.atom_domain(bounds=(0, 10), T=int)), dp.symmetric_distance()
    total = table >> dp.t.then_sum() >> dp.m.then_laplace(10.0)  # type: ignore[no-untyped-call]
    for name, measurement, records in (
        ("laplace on floats", dp.m.make_laplace(numbers, dp.absolute_distance(T=float), 1.0), [0.0, 1.0]),
        ("gaussian on floats", dp.m.make_gaussian(numbers, dp.absolute_distance(T=float), 1.0), [0.0, 1.0]),
        ("geometric", dp.m.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), 1.0), [0, 1]),
        ("laplace on vectors", dp.m.make_laplace(vectors, dp.l1_distance(T=float), 1.0), [[0.0, 1.0], [0.0, 0.0]]),
        (
            "noisy max",
            dp.m.make_noisy_max(vectors, dp.linf_distance(T=float), dp.max_divergence(), 2.0),
            [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        ),
        ("randomized response", dp.m.make_randomized_response_bool(prob=0.75), None),
    ):
        yield Case("opendp", name, partial(as_target, opendp(measurement, records)))
    yield Case("opendp", "sum, a record replaced", lambda: central(total, [3, 4, 5], [0, 10]))
    yield Case("opendp", "sum, a record added", lambda: central(total, [3, 4, 5, 10], neighbours="add-remove"))


def pydp() -> Iterator[Case]:
    from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count, Max
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    for kind, table in (
        (BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="int"), [3, 4, 5, 10]),
        (BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float"), [3.0, 4.0, 5.0, 10.0]),
        (BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="float"), [3.0, 4.0, 5.0, 10.0]),
        (Count(epsilon=1.0, dtype="int"), [3, 4, 5, 10]),
        (Max(epsilon=1.0, lower_bound=0, upper_bound=10, dtype="int"), [3, 4, 5, 10]),
    ):
        name = f"{type(kind).__name__} of {type(table[0]).__name__}, a record added"
        yield Case("python-dp", name, partial(central, kind, table, neighbours="add-remove"))
    signed = BoundedSum(epsilon=1.0, lower_bound=-10, upper_bound=10, dtype="int")
    yield Case(
        "python-dp",
        "BoundedSum on [-10, 10], a record replaced",
        lambda: central(signed, [3, 4, 5], [-10, 10]),
        1.0,
        CONVENTION,
        ("output > 12", lambda output: output > 12),
    )
    laplace, gaussian = LaplaceMechanism(epsilon=1.0, sensitivity=1.0), GaussianMechanism(0.9, 0.01, 1.0)
    yield Case("python-dp", "LaplaceMechanism", partial(as_target, laplace.add_noise, [0.0, 1.0]), 1.0)
    yield Case(
        "python-dp",
        "GaussianMechanism",
        partial(as_target, gaussian.add_noise, [0.0, 1.0]),
        (0.9, 0.01),
        FLOATS,
        ("a multiple of 2^-54 but not of 2^-53", lambda output: (output * 2.0**54) % 2 == 1),
    )


def pipeline_dp() -> Iterator[Case]:
    import pipeline_dp as pipeline

    def total(rows: list[tuple[int, str, float]]) -> float:
        accountant = pipeline.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
        engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
        wanted = pipeline.AggregateParams(
            metrics=[pipeline.Metrics.SUM],
            noise_kind=pipeline.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0,
            max_value=10,
        )
        columns = pipeline.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        result = engine.aggregate(rows, wanted, columns, public_partitions=["all"])
        accountant.compute_budgets()
        return float(next(iter(result))[1].sum)

    table = [(person, "all", 5.0) for person in range(4)] + [(9, "all", 10.0)]
    yield Case("pipeline-dp", "sum, a person added", lambda: central(total, table, neighbours="add-remove"), 1.0)


def pure_ldp_clients() -> Iterator[Case]:
    import random

    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    for protocol in ("GRR", "OUE", "OLH"):
        yield Case("pure-ldp", protocol, partial(as_target, pure_ldp(protocol, epsilon=1.0, d=6)))
    random.seed(1)  # by which the server draws its hash functions
    share = RAPPORClient(0.5, 16, [], 4).convert_eps_to_f(1.0)
    hashes = RAPPORServer(share, 16, 1, 4).get_hash_funcs()
    own = [functions[0]("0") for functions in hashes]  # the bit of the first record in each cohort
    yield Case(
        "pure-ldp",
        "RAPPOR, four records",
        partial(as_target, RAPPORClient(share, 16, hashes, 4), [1, 2, 3, 4]),
        1.0,
        FLAW,
        ("the bit of record 1 is off", lambda output: output[0][own[output[1]]] == 0),
    )


def multi_freq_ldpy_clients() -> Iterator[Case]:
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

    for protocol in ("GRR", "OUE", "OLH"):
        yield Case("multi-freq-ldpy", protocol, partial(as_target, multi_freq_ldpy(protocol, epsilon=1.0, k=6)))
    yield Case(
        "multi-freq-ldpy",
        "RS+FD with GRR, two attributes that both differ",
        lambda: as_target(lambda record: RSpFD_GRR_Client(record, [2, 2], 2, 1.0), [(0, 0), (1, 1)], name="RS+FD[GRR]"),
        1.0,
        FLAW,
        ("both answers are 1", lambda output: list(output) == [1, 1]),
    )


SOURCES = (
    diffprivlib_flaws,
    diffprivlib_floats,
    diffprivlib_others,
    eeprivacy,
    flower,
    opendp_measurements,
    pydp,
    pipeline_dp,
    pure_ldp_clients,
    multi_freq_ldpy_clients,
)


def counted(case: Case, target: Target) -> str:
    """The independent count: how often each of the first two records shows the event, in fresh runs."""
    if case.event is None:
        return ""
    words, happens = case.event
    times = [
        sum(map(happens, target.sample(np.full(COUNTED, record), np.random.default_rng(99 + record))))
        for record in range(2)
    ]
    return f"{words}: {times[0]} and {times[1]} of {COUNTED}"


def row(case: Case) -> str:
    """One audit by default settings, and another without the low bits, as lines of the table."""
    started = time.perf_counter()
    target = case.target()
    report = audit(target, case.claim, runs=case.runs)
    seconds = time.perf_counter() - started
    bits = (
        audit(target, case.claim, runs=case.runs, look=Look(low_bits=False)) if report.verdict == "violated" else None
    )
    without = "" if bits is None else f"{bits.epsilon_certified:.2f}"
    verdict = report.verdict.split()[0]
    known = "violated" if case.cause != NONE else "consistent"
    missed = "" if verdict == known else f"   MISSED: {known} is known"
    lines = [
        f"{case.library:16s} {case.name:68s} {_claim(report):18s} {verdict:10s} {report.epsilon_certified:5.2f} "
        f"{without:>5s} {case.runs:7d} {seconds:5.0f} s  {case.cause}{missed}"
    ]
    lines += [f"    witness: {witness.sentence()}" for witness in report.witnesses[:1]]
    if report.verdict == "violated":
        lines.append(f"    counted: {counted(case, target)}")
    return "\n".join(lines)


def _claim(report: AuditReport) -> str:
    claim = report.claim
    delta = f", {claim.delta:.2g}" if claim.delta else ""
    return f"{claim.epsilon:.2g}{delta}{' add' if claim.relation == 'add-remove' else ''}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of what is audited; all by default")
    wanted = parser.parse_args().names
    warnings.simplefilter("ignore")  # what libraries say of themselves, thousands of times
    logging.disable(logging.CRITICAL)
    names = ("diffprivlib", "eeprivacy", "flwr", "opendp", "python-dp", "pipeline-dp", "pure-ldp", "multi-freq-ldpy")
    print(", ".join(f"{name} {version_of(name)}" for name in names if version_of(name)))
    for source in SOURCES:
        try:
            cases = list(source())
        except (ImportError, TargetError) as problem:
            print(f"{source.__name__}: left out ({problem}){HINT * ('sklearn' in str(problem))}")
            continue
        for case in cases:
            if not wanted or any(name in f"{case.library} {case.name}" for name in wanted):
                print(row(case), flush=True)


if __name__ == "__main__":
    main()
