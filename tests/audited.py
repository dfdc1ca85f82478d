"""Code that is audited: kept promises and broken ones. Workers import it, so it imports little."""

import math
import multiprocessing
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.auditing import AuditReport

Rng = np.random.Generator
Code = Callable[..., Any]


def laplace(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.laplace())) / 1024  # so that the last bits tell nothing


def half_the_noise(record: float, rng: Rng) -> float:
    return record + rng.laplace(scale=0.5)


def same_seed(record: float) -> float:
    return record + np.random.default_rng(7).laplace()


def sparse_vector(record: int, rng: Rng, noise: float = 4.0) -> int:
    """The first of two queries, each changed by at most 1 by a person, above a noisy threshold; epsilon 1."""
    threshold = 0.5 + rng.laplace(scale=2.0)
    answers = (query + (rng.laplace(scale=noise) if noise else 0.0) for query in (record, 1 - record))
    return next((place for place, answer in enumerate(answers) if answer >= threshold), 2)


def sparse_vector_without_noise(record: int, rng: Rng) -> int:
    return sparse_vector(record, rng, noise=0.0)


TRUTH = math.e / (math.e + 9)  # of GRR on 10 records at epsilon 1


def grr(record: int, rng: Rng, truth: float = TRUTH) -> int:
    return record if rng.random() < truth else int((record + rng.integers(1, 10)) % 10)


def grr_from_all(record: int, rng: Rng) -> int:
    """The thesis's first fault: the other answer is drawn from all records, the true one too."""
    return record if rng.random() < TRUTH else int(rng.integers(10))


def grr_tenth(record: int, rng: Rng) -> int:
    """The thesis's second fault: the truth is told with 0.1 more."""
    return grr(record, rng, TRUTH + 0.1)


def grr_too_honest(record: int, rng: Rng) -> int:
    return grr(record, rng, 1.15 * TRUTH)


def oue_without_reset(record: int, rng: Rng) -> list[bool]:
    """The fault of pure-ldp 1.1.2: the true bit stays on if either draw turns it on."""
    bits = rng.random(10) < 1 / (math.e + 1)
    bits[record] |= rng.random() < 0.5
    return [bool(bit) for bit in bits]


def global_noise(record: int) -> float:
    return record + float(np.random.laplace())  # noqa: NPY002


def dies_once(record: int, rng: Rng) -> float:
    marker = Path(os.environ["DPRISK_TEST_MARKER"])
    if multiprocessing.parent_process() is not None and not marker.exists():
        marker.touch()
        os._exit(1)
    return record + rng.laplace()


def dies(record: int) -> int:
    if multiprocessing.parent_process() is not None:
        os._exit(1)
    return record


def fails_in_a_worker(record: int) -> int:
    return record if multiprocessing.parent_process() is None else record // 0


def hangs_in_a_worker(record: int) -> int:
    if multiprocessing.parent_process() is not None:
        time.sleep(60)
    return record


class Hidden:
    """A generator of somebody's own, which nobody can find or seed: each new process begins with the same numbers."""

    state = 12345

    def uniform(self) -> float:
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53


HIDDEN = Hidden()


def hidden_noise_masked(record: int) -> int:
    """Noise of a hidden generator, of which another, new in each process, changes a part."""
    noise = math.floor(-math.log(1 - HIDDEN.uniform()) * 2**20) - math.floor(-math.log(1 - HIDDEN.uniform()) * 2**20)
    answer = record * 2**20 + noise
    return answer - answer % 16 if secrets.randbelow(20) == 0 else answer


def coin(record: int) -> int:
    return record ^ secrets.randbelow(2)


def same(report: AuditReport) -> dict[str, Any]:
    return {key: value for key, value in report.to_dict().items() if key != "seconds"}
