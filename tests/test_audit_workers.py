"""The same report whoever runs an audit: processes, threads, a cluster, in blocks of any size."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from dprisk.auditing import Look, Running, as_target, audit
from dprisk.auditing.running import plan, workers
from dprisk.auditing.running.workers import RETRIES
from dprisk.errors import AuditedCodeError, TargetError
from dprisk.mechanisms import GRR, OUE
from tests.audited import coin, dies, dies_once, global_noise, half_the_noise, hidden_noise_masked, laplace, same


class LateExecutor(Executor):
    """Runs nothing before a result is asked for, and then what was submitted last first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future = LateFuture(self)
        self.waiting.append((future, lambda: function(*arguments, **named)))
        return future

    def run(self) -> None:
        while self.waiting:
            future, call = self.waiting.pop()
            future.set_result(call())


class LateFuture(Future[Any]):
    def __init__(self, executor: LateExecutor) -> None:
        super().__init__()
        self.executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self.executor.run()
        return super().result(timeout)


def executors() -> Iterator[Running]:
    yield Running(n_jobs=2)
    yield Running(n_jobs=4)
    yield Running(executor=LateExecutor())
    with ThreadPoolExecutor(3) as threads:
        yield Running(executor=threads)
    with ProcessPoolExecutor(2) as processes:
        yield Running(executor=processes)


@pytest.mark.slow
@pytest.mark.parametrize("stop_early", [False, True])
def test_any_executor_gives_the_same_report(stop_early: bool) -> None:
    cases: list[tuple[Any, dict[str, Any]]] = [
        (OUE(20, 2.0), {"claim": 2.0, "runs": 45_000}),
        (global_noise, {"claim": 1.0, "records": [0, 1], "runs": 3250}),
        (half_the_noise, {"claim": 1.0, "records": [0, 1], "runs": 3250}),
    ]
    alone = [same(audit(subject, **given, stop_early=stop_early)) for subject, given in cases]
    for running in executors():
        for (subject, given), expected in zip(cases, alone, strict=True):
            assert same(audit(subject, **given, running=running, stop_early=stop_early)) == expected


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same_report() -> None:
    import distributed

    given: dict[str, Any] = {"claim": 1.0, "records": [0, 1], "runs": 3250}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        report = audit(global_noise, **given, running=Running(executor=client.get_executor()))
    assert same(report) == same(audit(global_noise, **given))


def test_another_seed_gives_another_report() -> None:
    assert audit(GRR(5, 1.0), runs=1000, seed=1).counts != audit(GRR(5, 1.0), runs=1000, seed=2).counts


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "died"
    monkeypatch.setenv("DPRISK_TEST_MARKER", str(marker))
    expected = same(audit(dies_once, 1.0, records=[0, 1], runs=3000))
    assert not marker.exists()
    report = audit(dies_once, 1.0, records=[0, 1], runs=3000, running=Running(n_jobs=2))
    assert "Workers died 1 times" in report.notes[0]
    assert same(replace(report, notes=())) == expected
    assert marker.exists()


@pytest.mark.slow
def test_workers_that_always_die_end_in_one_sentence() -> None:
    with pytest.raises(TargetError, match=f"A worker died {RETRIES + 1} times in a row at block 0"):
        audit(dies, 1.0, records=[0, 1], runs=1000, running=Running(n_jobs=2))
    with ProcessPoolExecutor(1) as pool, pytest.raises(TargetError, match="A worker died 1 times"):
        audit(dies, 1.0, records=[0, 1], runs=1000, running=Running(executor=pool))


def test_code_that_cannot_be_sent_says_so() -> None:
    with pytest.raises(TargetError, match="cannot be sent to other processes"):
        audit(lambda record: record, 1.0, records=[0, 1], runs=1000, running=Running(n_jobs=2))


# --- blocks of code that is called ---


def test_blocks_grow_with_the_runs_planned_and_with_nothing_else() -> None:
    code = as_target(laplace, 2)
    sizes = [plan.block_sizes(code, runs, False) for runs in (10, 20_000, 100_000, 10_000_000)]
    assert sizes == [(1000, 1000), (1000, 1000), (5000, 10_000), (10_000, 20_000)]
    assert plan.block_sizes(code, 10_000_000, True) == (100, 100)
    assert plan.block_sizes(as_target(lambda records: records, 2, batch=True), 10_000_000, False) == (1000, 1000)


@hypothesis.given(st.data(), st.integers(1, 10_000), st.integers(1, 2), st.booleans())
def test_every_run_is_in_one_block(data: st.DataObject, block: int, times: int, learns: bool) -> None:
    runs = data.draw(st.integers(1, 2000 * block))  # rounds are shares of the blocks; of millions they are the same
    rounds = list(plan._rounds(runs, block, times * block, learns))
    numbers = [number for part in rounds for number in part.numbers]
    assert numbers == list(range(len(numbers)))
    assert sum(part.count(number) for part in rounds for number in part.numbers) == runs
    assert all(part.count(number) > 0 for part in rounds for number in part.numbers)


@pytest.mark.slow
def test_large_blocks_give_the_same_report_to_any_workers() -> None:
    given: dict[str, Any] = {"claim": 1.0, "records": [0, 1], "runs": 70_000}
    assert same(audit(half_the_noise, **given)) == same(audit(half_the_noise, **given, running=Running(n_jobs=2)))


def test_the_state_of_the_callers_randomness_is_put_back_after_an_audit() -> None:
    before = random.getstate()
    audit(global_noise, 1.0, records=[0, 1], runs=1500)
    with pytest.raises(AuditedCodeError):
        audit(lambda record: 1 // 0, 1.0, records=[0, 1], runs=1500, look=Look(family=GRR(2, 1.0)))
    with pytest.raises(TargetError, match="leave out `family`"):
        audit(lambda record: "text", 1.0, records=[0, 1], runs=1500, look=Look(family=GRR(2, 1.0)))
    assert random.getstate() == before


def test_noise_that_workers_share_in_part_is_noticed() -> None:
    with pytest.raises(TargetError, match="draws the same noise in every worker"):
        audit(hidden_noise_masked, 1.05, records=2, runs=4000, running=Running(n_jobs=2))


def test_answers_that_are_often_alike_by_chance_are_no_shared_noise() -> None:
    assert audit(coin, 1.0, records=2, runs=2000, running=Running(n_jobs=2)).runs == 2000


@hypothesis.given(st.integers(0, 64), st.integers(0, 64))
def test_so_many_alike_by_chance_is_fishers_test(times: int, others: int) -> None:
    table = [[times, 64 - times], [others, 64 - others]]
    assert workers._by_chance(times, others, 64) == pytest.approx(fisher_exact(table, "greater").pvalue, rel=1e-6)
