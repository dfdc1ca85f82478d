"""The classic faulty programs, and their correct relatives, audited with default settings.

    python benchmarks/faulty.py [--runs 200000] [--seeds 1] [--only NAME ...]

Noisy max after Ding et al. (2018, Detecting violations of differential privacy), the six variants of the sparse vector
technique after Lyu et al. (2017, Understanding the sparse vector technique for differential privacy), a histogram, and
the aggregation of PATE. Each is a function of a whole input that promises EPSILON; all that a user writes is one line,

    audit(program, claim=EPSILON, records=Neighbours.queries(5))

A row tells what was certified, the verdict, the time, and the witness. Rows that miss what is wanted say so: a faulty
program must be found, a correct one be consistent with its claim. Written from the papers' pseudocode.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing import Neighbours, audit

EPSILON = 1.0
GRID = 1024  # noise that is published is rounded to multiples of 1/1024, so that its last bits tell nothing

Program = Callable[[Any, np.random.Generator], Any]


# --- noisy max: each answer moves by 1 at most ---


def noisy_max_1a(answers: list[float], rng: np.random.Generator) -> int:
    """Laplace noise, the place of the largest: correct."""
    return int(np.argmax(answers + rng.laplace(scale=2 / EPSILON, size=len(answers))))


def noisy_max_1b(answers: list[float], rng: np.random.Generator) -> int:
    """Exponential noise, the place of the largest: correct."""
    return int(np.argmax(answers + rng.exponential(scale=2 / EPSILON, size=len(answers))))


def noisy_max_2a(answers: list[float], rng: np.random.Generator) -> float:
    """Laplace noise, the largest value itself: faulty."""
    return _rounded(np.max(answers + rng.laplace(scale=2 / EPSILON, size=len(answers))))


def noisy_max_2b(answers: list[float], rng: np.random.Generator) -> float:
    """Exponential noise, the largest value itself: faulty, for it is never below the largest answer."""
    return _rounded(np.max(answers + rng.exponential(scale=2 / EPSILON, size=len(answers))))


# --- sparse vector: which answers are above 1, at most COUNT of them ---

THRESHOLD, COUNT = 1.0, 1


def sparse_vector_1(answers: list[float], rng: np.random.Generator) -> list[bool]:
    """Lyu et al., their own: correct."""
    return _sparse(answers, rng, EPSILON / 2, EPSILON / 2 / (2 * COUNT))


def sparse_vector_2(answers: list[float], rng: np.random.Generator) -> list[bool]:
    """Dwork and Roth (2014): correct, with a new threshold after each answer above it."""
    found: list[bool] = []
    noisy = THRESHOLD + rng.laplace(scale=2 * COUNT / EPSILON)
    for answer in answers:
        above = answer + rng.laplace(scale=4 * COUNT / EPSILON) >= noisy
        found.append(bool(above))
        if above:
            noisy = THRESHOLD + rng.laplace(scale=2 * COUNT / EPSILON)
            if sum(found) >= COUNT:
                break
    return found


def sparse_vector_3(answers: list[float], rng: np.random.Generator) -> list[bool | float]:
    """Roth (2011): faulty, it publishes the noisy answer that was compared."""
    found: list[bool | float] = []
    noisy, above = THRESHOLD + rng.laplace(scale=2 / EPSILON), 0
    for answer in answers:
        value = answer + rng.laplace(scale=2 * COUNT / EPSILON)
        if value >= noisy:
            found.append(_rounded(value))
            above += 1
            if above >= COUNT:
                break
        else:
            found.append(False)
    return found


def sparse_vector_4(answers: list[float], rng: np.random.Generator) -> list[bool]:
    """Lee and Clifton (2014): faulty, the noise of an answer does not grow with COUNT."""
    return _sparse(answers, rng, EPSILON / 4, 3 * EPSILON / 4, count=3)


def sparse_vector_5(answers: list[float], rng: np.random.Generator) -> list[bool]:
    """Stoddard et al. (2014): faulty, only the threshold has noise."""
    return _sparse(answers, rng, EPSILON / 2, np.inf, count=len(answers))


def sparse_vector_6(answers: list[float], rng: np.random.Generator) -> list[bool]:
    """Chen et al. (2015): faulty, it never stops."""
    return _sparse(answers, rng, EPSILON / 2, EPSILON / 2, count=len(answers))


def _sparse(
    answers: list[float], rng: np.random.Generator, of_threshold: float, of_answer: float, count: int = COUNT
) -> list[bool]:
    """Answers compared with one noisy threshold, until `count` were above it; the scales are 1 over these epsilons."""
    found: list[bool] = []
    noisy = THRESHOLD + rng.laplace(scale=1 / of_threshold)
    for answer in answers:
        found.append(bool(answer + rng.laplace(scale=1 / of_answer) >= noisy))
        if sum(found) >= count:
            break
    return found


# --- histograms and votes ---


def histogram(counts: list[int], rng: np.random.Generator) -> list[float]:
    """Noise of scale 1/epsilon on each count, one person joins one of them: correct."""
    return [_rounded(value) for value in counts + rng.laplace(scale=1 / EPSILON, size=len(counts))]


def histogram_half(counts: list[int], rng: np.random.Generator) -> list[float]:
    """Half the noise: faulty."""
    return [_rounded(value) for value in counts + rng.laplace(scale=1 / EPSILON / 2, size=len(counts))]


def pate(votes: list[int], rng: np.random.Generator) -> int:
    """The label with most votes after noise, one teacher changes its vote: correct."""
    return int(np.argmax(votes + rng.laplace(scale=2 / EPSILON, size=len(votes))))


def pate_consensus(votes: list[int], rng: np.random.Generator) -> int | None:
    """The same, but nothing unless ten agree, which is checked without noise: faulty."""
    return pate(votes, rng) if max(votes) > 10 else None


def _rounded(value: float) -> float:
    return round(float(value) * GRID) / GRID


@dataclass(frozen=True)
class Case:
    """A program, the inputs that it is run on, and whether it keeps its promise."""

    program: Program
    records: Neighbours
    keeps: bool


QUERIES, SEVEN = Neighbours.queries(5), Neighbours.queries(7)
CASES = [
    Case(noisy_max_1a, QUERIES, True),
    Case(noisy_max_1b, QUERIES, True),
    Case(noisy_max_2a, QUERIES, False),
    Case(noisy_max_2b, QUERIES, False),
    Case(sparse_vector_1, QUERIES, True),
    Case(sparse_vector_2, QUERIES, True),
    Case(sparse_vector_3, SEVEN, False),
    Case(sparse_vector_4, SEVEN, False),
    Case(sparse_vector_5, SEVEN, False),
    Case(sparse_vector_6, SEVEN, False),
    Case(histogram, Neighbours.counts(5, "add-remove"), True),
    Case(histogram_half, Neighbours.counts(5, "add-remove"), False),
    Case(pate, Neighbours.counts(5), True),
    Case(pate_consensus, Neighbours.counts(5), False),
]
LINES = 1  # that a user writes beside the program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    print(f"{'program':18s} {'is':8s} claim  certified  seconds  lines  verdict")
    for case in CASES:
        name = case.program.__name__
        if given.only and name not in given.only:
            continue
        for seed in range(given.seeds):
            started = time.perf_counter()
            report = audit(case.program, claim=EPSILON, records=case.records, runs=given.runs, seed=seed)
            seconds = time.perf_counter() - started
            wanted = "consistent with the claim" if case.keeps else "violated"
            row = f"{name:18s} {'correct' if case.keeps else 'faulty':8s} {EPSILON:5g}  {report.epsilon_certified:9.3f}"
            missed = "" if report.verdict == wanted else "   MISSED"
            print(f"{row}  {seconds:7.1f}  {LINES:5d}  {report.verdict}{missed}", flush=True)
            for witness in report.witnesses[:1]:
                print(f"    {witness.sentence()}", flush=True)


if __name__ == "__main__":
    main()
