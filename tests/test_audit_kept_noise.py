"""Code that keeps its noise is refused: its runs are copies of one run, and whatever an audit says of them is luck."""

import functools
import math
import os
import random
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import central
from dprisk.auditing import Running, as_target, audit
from dprisk.auditing.code import kept_noise
from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.kept_noise import require_fresh_noise
from dprisk.errors import TargetError
from dprisk.types import AnyArray
from tests.typed import run

KEEPS = "keeps its noise: .* not independent"


class Client:
    """RAPPOR's permanent response: correct, of epsilon 1, and kept for each value."""

    def __init__(self) -> None:
        self.memo: dict[Any, AnyArray] = {}

    def __call__(self, record: int, rng: np.random.Generator) -> AnyArray:
        if record not in self.memo:
            bits = np.zeros(8, int)
            bits[record] = 1
            self.memo[record] = bits ^ (rng.random(8) < 1 / (1 + math.exp(0.5)))
        return self.memo[record].copy()

    def report(self, record: int, rng: np.random.Generator) -> AnyArray:
        return self(record, rng)


def tried(target: Any) -> None:
    assert isinstance(target, CodeTarget)
    require_fresh_noise(target)


def flip(record: int, rng: np.random.Generator, epsilon: float = 1.0) -> int:
    return record ^ int(rng.random() < 1 / (1 + math.exp(epsilon)))


class Slotted:
    """What no weak reference can be made of."""

    __slots__ = ("memo",)

    def __init__(self) -> None:
        self.memo: dict[int, int] = {}

    def __call__(self, record: int, rng: np.random.Generator) -> int:
        if record not in self.memo:
            self.memo[record] = flip(record, rng)
        return self.memo[record]


class Drawing:
    """Noise from somewhere else than a parameter, kept for each record."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.memo: dict[int, int] = {}

    def __call__(self, record: int) -> int:
        if record not in self.memo:
            self.memo[record] = record ^ int(self.draw())
        return self.memo[record]


HIDDEN = {"generator": np.random.default_rng(5)}
SOURCES = {
    "numpy": lambda: np.random.random() < 0.3,  # noqa: NPY002
    "urandom": lambda: os.urandom(1)[0] % 2,
    "secrets": lambda: secrets.randbelow(2),
    "unseeded": lambda: np.random.default_rng().random() < 0.3,
    "hidden": lambda: globals()["HID" + "DEN"]["generator"].random() < 0.3,
}


@pytest.mark.parametrize("seed", range(5))
def test_a_permanent_response_is_refused(seed: int) -> None:
    with pytest.raises(TargetError, match=KEEPS + r".*`lambda record, rng: Client\(\)\(record, rng\)`"):
        audit(Client(), 1.0, records=[0, 5], runs=5000, seed=seed)


def test_the_remedy_is_one() -> None:
    report = audit(lambda record, rng: Client()(record, rng), 1.0, records=[0, 5], runs=5000)
    assert report.verdict == "consistent with the claim"


def test_it_is_refused_again() -> None:
    """The second time it draws nothing at all, as code without noise does."""
    client = Client()
    for _ in range(3):
        with pytest.raises(TargetError, match=KEEPS):
            audit(client, 1.0, records=[0, 1], runs=2000)


def test_what_cannot_be_remembered_is_refused() -> None:
    with pytest.raises(TargetError, match=KEEPS):
        audit(Slotted(), 1.0, records=[0, 1], runs=2000)


def test_methods_functions_and_targets_are_refused() -> None:
    client = Client()
    for _ in range(2):
        with pytest.raises(TargetError, match=KEEPS + r".*Client\(\)\.report\(record, rng\)"):
            audit(client.report, 1.0, records=[0, 5], runs=2000)
    other = Client()
    with pytest.raises(TargetError, match=KEEPS):
        audit(as_target(lambda record, rng: other(record, rng).sum(), [0, 5], failures=True), 1.0, runs=2000)
    with pytest.raises(TargetError, match=KEEPS):
        audit(as_target(Client(), [0, 5], post=tuple, timing=True), 1.0, runs=2000)


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_refused_wherever_it_draws(source: str) -> None:
    with pytest.raises(TargetError, match=KEEPS):
        audit(Drawing(SOURCES[source]), 1.0, records=[0, 1], runs=2000)


class Instantaneous(Client):
    """All of RAPPOR's client: fresh noise in each report, on top of the permanent response."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __call__(self, record: int, rng: np.random.Generator) -> AnyArray:
        if record not in self.memo:
            self.memo[record] = (np.arange(self.size) == record) ^ (rng.random(self.size) < 0.3)
        return np.asarray(self.memo[record] ^ (rng.random(self.size) < 0.25))


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("records", [[0, 5], range(100)])
def test_fresh_noise_on_top_of_what_is_kept_is_refused(size: int, records: Any) -> None:
    client = Instantaneous(size)
    for _ in range(2):
        with pytest.raises(TargetError, match=KEEPS):
            audit(client, 1.0, records=records, runs=2000)
    tried(as_target(lambda record, rng: Instantaneous(size)(record, rng), records))


def test_fresh_noise_from_elsewhere_on_top_of_what_is_kept_is_refused() -> None:
    held, memo = np.random.default_rng(3), dict[int, float]()

    def answer(record: int) -> float:
        kept = memo[record] if record in memo else memo.setdefault(record, record + random.gauss())
        return kept + held.normal()

    with pytest.raises(TargetError, match=KEEPS):
        audit(answer, 1.0, records=[0, 1], runs=2000)


@pytest.mark.parametrize("kind", ["prepared once", "in turns", "a spare one", "of a growing pool", "by rejection"])
def test_code_that_draws_more_in_some_calls_passes(kind: str) -> None:
    """What it keeps is for everybody, or used up."""
    state: list[float] = []

    def more(rng: np.random.Generator) -> float:
        if kind == "prepared once" and not state:
            state.extend(rng.random(5))
        if kind == "in turns":
            state.append(0.0)
            return float(rng.random(1 + len(state) % 2)[0])
        if kind == "a spare one":
            if not state:
                state.extend(rng.random(2))
            return state.pop()
        if kind == "of a growing pool":
            state.extend(rng.random(1 + len(state) % 5))
        while kind == "by rejection" and rng.random() < 0.5:
            pass
        return 0.0

    def answer(record: int, rng: np.random.Generator) -> float:
        return round(record + rng.laplace() + 0 * more(rng), 1)

    tried(as_target(answer, range(10)))


class Setdefault(Client):
    """Draws in each call, and gives what its first draw gave."""

    def __call__(self, record: int, rng: np.random.Generator) -> AnyArray:
        return np.asarray(self.memo.setdefault(record, np.array([flip(record, rng)])))


def test_draws_that_are_dropped_are_no_fresh_noise() -> None:
    with pytest.raises(TargetError, match=KEEPS):
        audit(Setdefault(), 1.0, records=[0, 1], runs=2000)


class Buffered:
    """Uniform numbers that are drawn many at a time, each used once."""

    def __init__(self, epsilon: float, source: str = "parameter") -> None:
        self.epsilon, self.source = epsilon, source
        self.pool: list[float] = []

    def __call__(self, record: int, rng: np.random.Generator) -> int:
        if not self.pool:
            drawn = np.frombuffer(os.urandom(80_000), dtype=np.uint64) / 2.0**64
            self.pool = (rng.random(10_000) if self.source == "parameter" else drawn).tolist()
        return record ^ int(self.pool.pop() < 1 / (1 + math.exp(self.epsilon)))


@pytest.mark.parametrize("source", ["parameter", "system"])
@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_noise_of_a_buffer_is_not_shared_out_to_workers(epsilon: float, source: str) -> None:
    """Each would begin with what is left in it: a third of the audits at epsilon 3 to 5 said "violated"."""
    with pytest.raises(TargetError, match="each worker would begin with the same"):
        audit(Buffered(epsilon, source), epsilon, records=[0, 1], runs=2000, running=Running(n_jobs=2))
    assert audit(Buffered(epsilon, source), epsilon, records=[0, 1], runs=2000, alpha=1e-6).verdict != "violated"


def test_what_is_kept_and_no_noise_is_found_out() -> None:
    class Session:
        def __init__(self) -> None:
            self.token = ""

        def __call__(self, record: int) -> int:
            self.token = self.token or secrets.token_hex(8)
            return record

    assert audit(Session(), 1.0, records=[0, 1], runs=2000).verdict == "violated"


def test_a_cache_that_holds_nothing_passes() -> None:
    cached = functools.lru_cache(maxsize=0)(lambda record: record ^ int(np.random.random() < 0.3))  # noqa: NPY002
    assert audit(cached, 1.0, records=[0, 1], runs=2000).verdict == "consistent with the claim"


@pytest.mark.parametrize("warm", [False, True])
def test_an_lru_cache_is_refused_also_when_it_was_called_before(warm: bool) -> None:
    cached = functools.lru_cache(lambda record: record ^ int(np.random.random() < 0.3))  # noqa: NPY002
    if warm:
        _ = cached(0), cached(1)
    with pytest.raises(TargetError, match=KEEPS + r".*what is inside its cache, .*__wrapped__\.$"):
        audit(cached, 1.0, records=[0, 1], runs=2000)
    assert audit(cached.__wrapped__, 1.0, records=[0, 1], runs=2000).verdict == "consistent with the claim"


def test_a_cached_method_is_refused() -> None:
    class Cached:
        @functools.lru_cache  # noqa: B019
        def __call__(self, record: int, rng: np.random.Generator) -> int:
            return flip(record, rng)

    cached = Cached()
    _ = [cached(record, np.random.default_rng(0)) for record in (0, 1)]
    with pytest.raises(TargetError, match=KEEPS):
        audit(cached, 1.0, records=[0, 1], runs=2000)


def test_a_cache_without_noise_is_a_violation() -> None:
    cached = functools.lru_cache(lambda record: 2 * record)
    assert [audit(cached, 1.0, records=[0, 1], runs=500).verdict for _ in range(2)] == ["violated"] * 2


def test_a_cached_mean_is_refused() -> None:
    answers: dict[bytes, float] = {}

    def mean(data: AnyArray, rng: np.random.Generator) -> float:
        if data.tobytes() not in answers:
            answers[data.tobytes()] = float(data.mean() + rng.laplace(scale=1 / len(data)))
        return answers[data.tobytes()]

    target = central(mean, np.array([0.0, 1.0] * 5), records=[0.0, 1.0])
    with pytest.raises(TargetError, match=r"mean on 10 others keeps its noise"):
        audit(target, 1.0, runs=2000)


def test_a_salt_is_refused() -> None:
    """Drawn in the first call for everybody; what comes after it has no noise."""
    salt: list[int] = []

    def hashed(record: int, rng: np.random.Generator) -> int:
        if not salt:
            salt.append(int(rng.integers(1 << 30)))
        return (record * 7919 + salt[0]) % 4

    with pytest.raises(TargetError, match=KEEPS):
        audit(hashed, 1.0, records=4, runs=2000)


def test_a_batch_that_is_kept_is_refused() -> None:
    memo: dict[int, int] = {}

    def batch(records: AnyArray, rng: np.random.Generator) -> list[int]:
        return [memo[record] if record in memo else memo.setdefault(record, flip(record, rng)) for record in records]

    with pytest.raises(TargetError, match=KEEPS):
        audit(as_target(batch, [0, 1], batch=True), 1.0, runs=2000)


def test_some_records_kept_are_refused() -> None:
    memo: dict[int, int] = {}

    def some(record: int, rng: np.random.Generator) -> int:
        if record < 3:
            return int(rng.integers(2))
        return memo[record] if record in memo else memo.setdefault(record, int(rng.integers(2)))

    with pytest.raises(TargetError, match=KEEPS):
        audit(some, 1.0, records=range(10), runs=2000)


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("chunk", [10, 1000])
def test_noise_drawn_in_advance_passes(chunk: int, epsilon: float) -> None:
    """Many calls draw nothing, and at epsilon 5 nearly all give the same."""
    noise: list[float] = []

    def answer(record: int, rng: np.random.Generator) -> int:
        if not noise:
            noise.extend(rng.random(chunk))
        return record ^ int(noise.pop() < 1 / (1 + math.exp(epsilon)))

    tried(as_target(answer, [0, 1]))
    assert audit(answer, epsilon, records=[0, 1], runs=2000).verdict != "violated"


@pytest.mark.parametrize("source", ["parameter", "held", "lazy", "lazily hidden"])
def test_honest_answers_that_hardly_ever_change_pass(source: str) -> None:
    held: dict[str, np.random.Generator] = {"held": np.random.default_rng(1)}
    made = functools.cache(np.random.default_rng)

    def answer(record: int, rng: np.random.Generator) -> int:
        if source == "lazy" and source not in held:
            held[source] = np.random.default_rng()
        own = rng if source == "parameter" else made() if source == "lazily hidden" else held[source]
        return flip(record, own, 20.0)

    assert audit(answer, 20.0, records=[0, 1], runs=1000).verdict != "violated"


@pytest.mark.parametrize("records", [[0, 1], range(50)])
def test_no_noise_at_all_stays_a_violation(records: Any) -> None:
    report = audit(lambda record, rng: 3 * record, 1.0, records=records, runs=2000)
    assert report.verdict == "violated"
    assert report.witnesses


def test_a_record_without_noise_beside_others_stays_a_violation() -> None:
    def answer(record: int | None, rng: np.random.Generator) -> float:
        return -1.0 if record is None else record + rng.laplace()

    assert audit(answer, 1.0, records=[0, 1, None], runs=2000).verdict == "violated"


def test_it_takes_three_calls_for_each_of_four_records_and_two_if_they_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def answer(record: int, rng: np.random.Generator) -> float:
        calls.append(record)
        return record + rng.laplace()

    tried(as_target(answer, range(100)))
    assert calls == [0, 0, 0, 33, 33, 33, 66, 66, 66, 99, 99, 99]
    calls.clear()
    monkeypatch.setattr(kept_noise, "PATIENCE", 0.0)
    tried(as_target(answer, range(100)))
    assert calls == [0, 0]


def test_records_that_code_changes_stay_as_they_are() -> None:
    records = [[0, 1], [1, 1]]

    def answer(record: list[int], rng: np.random.Generator) -> float:
        record.append(3)
        return sum(record) + rng.laplace()

    tried(as_target(answer, records))
    assert records == [[0, 1], [1, 1]]


def test_randomness_is_as_before() -> None:
    before = random.getstate(), os.urandom
    with pytest.raises(TargetError, match=KEEPS):
        tried(as_target(Drawing(lambda: random.random() < 0.5), [0, 1]))
    assert (random.getstate(), os.urandom) == before


def test_the_command_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sticky_client.py").write_text(
        "memo = {}\ndef client(record, rng):\n"
        "    return memo[record] if record in memo else memo.setdefault(record, int(rng.integers(2)))\n"
    )
    monkeypatch.chdir(tmp_path)
    code, _, said = run(capsys, monkeypatch, "audit", "sticky_client:client", "--records", "0,1", "--claim", "1")
    assert code == 2
    assert "keeps its noise" in said
