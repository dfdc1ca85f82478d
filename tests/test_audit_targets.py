"""What can be audited: functions, text, other libraries (by stand-ins of the same call shapes), recorded outputs."""

import json
import math
import pickle
import random
import secrets
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest

from dprisk.auditing import as_target, audit, audit_recorded, central, recorded
from dprisk.auditing.code import adapters
from dprisk.auditing.code.outputs import as_outputs
from dprisk.auditing.code.randomness import kept, seeded
from dprisk.auditing.code.reading import repeats
from dprisk.auditing.code.target import Target
from dprisk.errors import AuditedCodeError, DpriskError, InputFileError, ParameterError, TargetError
from dprisk.guarantees import PureDP
from dprisk.mechanisms import GRR, SUE, Product
from dprisk.types import AnyArray

HELD = np.random.default_rng(7)


def with_globals(record: int) -> float:
    return record + random.random() + float(np.random.normal())  # noqa: NPY002


def with_generator(record: int, rng: np.random.Generator) -> float:
    return record + rng.normal()


def with_held(record: int) -> float:
    return record + _helper()


def _helper() -> float:
    return HELD.normal()


def with_secrets(record: int) -> int:
    return record + secrets.randbelow(1 << 40)


def whole_batch(records: AnyArray, generator: np.random.Generator) -> AnyArray:
    return records + generator.normal(size=len(records))


def noisy_sum(data: list[int], rng: np.random.Generator) -> float:
    return sum(data) + rng.laplace()


def draw(target: Target, seed: int = 0, runs: int = 12) -> Any:
    return target.sample(np.arange(runs) % target.size, np.random.default_rng(seed))


# Randomness


@pytest.mark.parametrize("function", [with_globals, with_generator, with_held, partial(with_generator)])
def test_the_same_seed_gives_the_same_runs_and_another_seed_others(function: Any) -> None:
    target = as_target(function, 2)
    assert target.reproducible
    assert repeats(target)
    assert not np.any(draw(target, 0) == draw(target, 1))


def test_the_state_of_the_callers_randomness_is_left_alone() -> None:
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    draw(as_target(with_globals, 2))
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


def test_a_block_seeds_torch_as_torch_does() -> None:
    import torch

    def drawn(seed: int) -> list[float]:
        with seeded(seed, ()):
            return list(torch.rand(3).tolist())

    first = drawn(5)
    assert drawn(6) != first == drawn(5)
    torch.manual_seed(int(np.random.SeedSequence(5).generate_state(4)[3]))
    assert torch.rand(3).tolist() == first


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState, random.Random])
def test_generators_that_the_code_holds_are_reseeded(kind: Any) -> None:
    def build() -> Any:
        own = kind(1)
        return lambda record: own.random() + record

    one, two = as_target(build(), 2), as_target(build(), 2)
    assert np.array_equal(draw(one, 5), draw(two, 5))  # as in two processes that built it separately
    assert not np.any(draw(one, 5) == draw(two, 6))  # blocks do not share their numbers


def test_randomness_of_the_operating_system_is_seen() -> None:
    target = as_target(with_secrets, 2)
    assert not target.reproducible
    assert "secrets" in target.note
    assert not repeats(target)
    hidden = random.SystemRandom()
    assert not as_target(lambda record: hidden.random() + record, 2).reproducible


def test_a_generator_is_recognised_by_name_and_annotation_only() -> None:
    def annotated(record: int, noise: "np.random.Generator | None" = None, scale: float = 2.0) -> float:
        assert noise is not None
        return record + scale * noise.normal()

    def keyword(record: int, *, random_state: Any) -> float:
        return float(record + random_state.normal())

    def neither(record: int, seed: Any = None) -> bool:
        return seed is None

    assert repeats(as_target(annotated, 2))
    assert repeats(as_target(keyword, 2))
    assert draw(as_target(neither, 2)).all()


def test_a_type_error_inside_the_code_is_not_taken_for_a_missing_generator() -> None:
    def broken(record: Any, rng: np.random.Generator) -> Any:
        return record + "x"

    with pytest.raises(AuditedCodeError, match="TypeError") as error:
        draw(as_target(broken, 2))
    assert isinstance(error.value.__cause__, TypeError)


# Kinds of subjects


def test_a_mechanism_is_sampled_as_it_is() -> None:
    mechanism = GRR(3, epsilon=1.0).labelled(["a", "b", "c"])
    target = as_target(mechanism)
    assert target.records == ("a", "b", "c")
    assert target.size == 3
    assert np.array_equal(draw(target), mechanism.sample(np.arange(12) % 3, np.random.default_rng(0)))
    pair = draw(as_target(Product(GRR(3, epsilon=1.0), SUE(3, epsilon=1.0))))
    assert isinstance(pair, tuple)
    assert repeats(as_target(Product(GRR(3, epsilon=1.0), SUE(3, epsilon=1.0))))
    assert as_target(mechanism, claim=PureDP(2.0)).claim == PureDP(2.0)


def test_a_batch_function_is_called_once_a_block() -> None:
    calls = []

    def batch(records: AnyArray) -> AnyArray:
        calls.append(len(records))
        return records * 2

    assert np.array_equal(draw(as_target(batch, [1, 2], batch=True)), np.tile([2, 4], 6))
    assert calls == [12]
    assert repeats(as_target(whole_batch, 3, batch=True))
    with pytest.raises(TargetError, match=r"given 12 records and returned 1 outputs"):
        draw(as_target(lambda records: records[:1], 2, batch=True))
    with pytest.raises(TargetError, match=r"returned a float"):
        draw(as_target(lambda records: 1.0, 2, batch=True))


def test_a_central_mechanism_sees_one_record_among_the_others() -> None:
    seen = []

    def spy(data: Any) -> float:
        seen.append(list(data))
        data[0] = 99  # code may change its copy
        return float(len(data))

    draw(central(spy, [5, 6], [0, 1]), runs=3)
    assert seen == [[5, 6, 0], [5, 6, 1], [5, 6, 0]]
    seen.clear()
    draw(central(spy, np.array([5, 6]), [0.5, 1], place=1), runs=2)
    assert seen == [[5.0, 0.5], [5.0, 1.0]]  # the array holds all records, none is cut to a whole number
    target = central(noisy_sum, [1, 0], [0, 1], claim=PureDP(1.0))
    assert repeats(target)
    assert np.array_equal(draw(pickle.loads(pickle.dumps(target))), draw(target))
    assert repeats(central("tests.test_audit_targets:noisy_sum", [1, 0], [0, 1]))
    with pytest.raises(TargetError, match="does not fit"):
        central(spy, np.zeros((3, 2)), [1, 2])
    with pytest.raises(ParameterError, match="place"):
        central(spy, [1], [0, 1], place=1)


def test_parameters_and_post_processing() -> None:
    def scaled(record: int, scale: float, rng: np.random.Generator) -> float:
        return record + scale * rng.normal()

    assert np.array_equal(draw(as_target(scaled, 2, parameters={"scale": 0.0})), np.arange(12) % 2)
    assert set(draw(as_target(with_globals, 2, post=math.floor))) <= set(range(-9, 10))


@pytest.mark.parametrize(
    ("subject", "options", "message"),
    [
        (with_globals, {}, "does not tell its records"),
        (with_globals, {"records": []}, "At least one record"),
        (with_globals, {"records": "ab"}, "Records are a list"),
        (with_globals, {"records": [2, 1, 1]}, "must differ from each other; 1 is there 2 times"),
        (with_globals, {"records": pd.DataFrame({"a": [1, 2]})}, r"give records=frame\.to_dict\('records'\)"),
        (lambda: 1, {"records": 2}, "takes no argument"),
        (lambda record, scale: 1, {"records": 2}, "also needs scale: pass parameters"),
        (with_globals, {"records": 2, "parameters": {"x": 1}}, "unexpected keyword argument 'x'"),
        (GRR, {"records": 2}, "is a class"),
        (3, {"records": 2}, "cannot be called; give a function"),
        (types.SimpleNamespace(add_noise=abs), {"records": 2}, "it has a method add_noise: pass that"),
        (GRR(2, epsilon=1.0), {"batch": True}, "takes no further options"),
        (GRR(2, epsilon=1.0), {"records": 3}, "has 2 records"),
        (with_globals, {"records": 2, "timeout": 0}, "positive number of seconds"),
    ],
)
def test_what_cannot_be_audited_gets_one_sentence(subject: Any, options: Any, message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        as_target(subject, **options)


# Code named by text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_text_names_code_in_the_current_directory(here: Path) -> None:
    (here / "local_mechanism.py").write_text(
        "import numpy as np\n"
        "own = np.random.default_rng(1)\n"
        "def f(record):\n    return record + own.normal()\n"
        "class Client:\n    d, epsilon = 3, 1.0\n    index_mapper = staticmethod(lambda x: x - 1)\n"
        "    def privatise(self, x):\n        return x + own.normal()\n"
        "client = Client()\n"
    )
    target = as_target("local_mechanism:f", 2)
    assert target.name == "local_mechanism:f"
    assert repeats(target)
    sent = pickle.dumps(target)
    expected = draw(target)
    del sys.modules["local_mechanism"]
    assert np.array_equal(draw(pickle.loads(sent)), expected)
    client = as_target("local_mechanism:client")  # an object that cannot be pickled itself, but can by its name
    assert client.records == (1, 2, 3)
    assert client.claim == PureDP(1.0)
    assert np.array_equal(draw(pickle.loads(pickle.dumps(client))), draw(client))


def test_each_way_to_fail_with_text_is_told(here: Path) -> None:
    (here / "bad_import.py").write_text("import surely_not_installed\n")
    (here / "bad_code.py").write_text("1 / 0\n")
    (here / "good_code.py").write_text("def laplace(x): return x\nnumber = 3\n")
    for text, message in {
        "good_code": "package.module:function",
        "good_code:": "package.module:function",
        "./good_code.py:f": "package.module:function",
        "nowhere_to_be_found:f": "no module 'nowhere_to_be_found', neither installed nor in",
        "good_code.inner:f": "There is no module|fails when it is imported|imports",
        "bad_import:f": "imports 'surely_not_installed', which is not installed",
        "bad_code:f": "fails when it is imported: ZeroDivisionError",
        "good_code:laplase": "did you mean 'laplace'",
        "good_code:number": "cannot be called",
    }.items():
        with pytest.raises(TargetError, match=message):
            as_target(text, 2)


# Failures of the audited code


def fails_now_and_then(record: str, rng: np.random.Generator) -> float:
    value = rng.random()
    if value < 0.02:
        raise ValueError("no luck")
    return value


def test_a_failure_names_the_record_and_can_be_repeated() -> None:
    target = as_target(fails_now_and_then, ["a", "b"])
    with pytest.raises(AuditedCodeError, match="raised ValueError: no luck") as first:
        draw(target, runs=1000)
    error = first.value
    assert error.record == ["a", "b"][error.records[-1]]
    assert f"record {error.record!r}, run {len(error.records)} of" in str(error)
    assert f"test_audit_targets.py, line {fails_now_and_then.__code__.co_firstlineno + 3})" in str(error)
    assert isinstance(error, DpriskError)
    with pytest.raises(AuditedCodeError) as again:
        target.repeat(error.records, error.seed)  # type: ignore[attr-defined]
    assert again.value.records == error.records
    sent = pickle.loads(pickle.dumps(error))
    assert (str(sent), sent.record, sent.records, sent.seed) == (str(error), error.record, error.records, error.seed)


@pytest.mark.parametrize("others", [{"age": [1, 2]}, "abc"])
def test_a_table_is_not_taken_for_a_list_of_its_columns(others: Any) -> None:
    with pytest.raises(TargetError, match=r"list or an array of records, not a (dict|str); of a table give a list"):
        central(len, others, records=[0, 1])
    frame = pytest.importorskip("pandas").DataFrame({"age": [1, 2]})
    with pytest.raises(TargetError, match="not a DataFrame"):
        central(len, frame, records=[0, 1])


def test_an_exit_is_a_failure_and_an_interrupt_is_not() -> None:
    def leaves(record: int) -> None:
        sys.exit(3)

    def interrupted(record: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(AuditedCodeError, match="SystemExit: 3"):
        draw(as_target(leaves, 2))
    with pytest.raises(KeyboardInterrupt):
        draw(as_target(interrupted, 2))


def hangs(record: int) -> int:
    while record:
        try:
            time.sleep(0.01)
        except Exception:  # code that catches what it can
            continue
    return record


def takes_a_while(record: int) -> int:
    time.sleep(0.05)
    return record


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_a_hang_is_ended(batch: bool) -> None:
    code = (lambda records: [hangs(int(record)) for record in records]) if batch else hangs
    started = time.perf_counter()
    with pytest.raises(AuditedCodeError, match=r"did not return within 0.2 s") as error:
        draw(as_target(code, 2, timeout=0.2, batch=batch))
    assert 0.2 <= time.perf_counter() - started < 2
    assert error.value.record == (None if batch else 1)


def clears_up(record: int) -> int:
    try:
        return hangs(1)
    finally:
        time.sleep(0.06)


@pytest.mark.slow
def test_code_that_ran_out_of_time_may_clear_up() -> None:
    """And the timer is gone with it: nothing is raised afterwards."""
    for _ in range(5):
        with pytest.raises(AuditedCodeError, match=r"did not return within 0.1 s"):
            draw(as_target(clears_up, 2, timeout=0.1))
    time.sleep(0.2)


@pytest.mark.slow
def test_a_time_limit_is_for_a_run_not_for_the_block() -> None:
    slow = as_target(takes_a_while, 2, timeout=0.2)
    assert draw(slow).sum() == 6  # 0.6 s altogether


def test_where_there_is_no_timer_it_is_said() -> None:
    problems = []

    def work() -> None:
        try:
            draw(as_target(with_globals, 2, timeout=1.0))
        except ParameterError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "only the main thread" in problems[0]


@pytest.mark.slow
def test_worker_processes_give_the_same_outputs() -> None:
    targets = [as_target(with_held, 2), as_target(with_globals, 2, timeout=60), as_target(GRR(2, epsilon=1.0))]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for target in targets:
            assert np.array_equal(pool.submit(draw, target, 4).result(timeout=60), draw(target, 4))


# Other libraries


@pytest.mark.slow
def test_opendp_is_run_as_it_is() -> None:
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    target = as_target(dp.m.make_laplace(*space, scale=1.0), [0, 2])
    assert target.records == (0.0, 2.0)  # OpenDP refuses whole numbers here
    assert target.claim == PureDP(2.0)  # what its privacy map says of records 2 apart
    assert not target.reproducible
    assert not repeats(target)
    values = draw(target, runs=2000)
    assert abs(values[1::2].mean() - values[::2].mean() - 2) < 0.3
    about = json.loads(json.dumps(target.describe()))
    assert about["library"] == "opendp"
    assert about["version"][0].isdigit()
    truth = as_target(dp.m.make_randomized_response_bool(prob=0.75))
    assert truth.records == (False, True)
    assert truth.claim is not None
    assert draw(truth).dtype == bool
    category = as_target(dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.9), ["a", "b", "c"])
    assert set(draw(category)) <= {"a", "b", "c"}
    with pytest.raises(TargetError, match="does not tell its records"):
        as_target(dp.m.make_randomized_response(categories=["a", "b"], prob=0.9))
    with pytest.raises(AuditedCodeError, match="'wrong', run 1 of its block, raised TypeError"):
        draw(as_target(dp.m.make_laplace(*space, scale=1.0), ["wrong", 1]))


class StandInPureLdp:
    """The shape of pure-ldp 1.1.2 and 1.2.0: `privatise`, records from 1, a mapper that cannot be pickled."""

    def __init__(self, epsilon: float, d: int, use_oue: bool = False, index_mapper: Any = None) -> None:
        self.epsilon, self.d, self.use_oue = epsilon, d, use_oue
        self.index_mapper = index_mapper or (lambda x: x - 1)

    def privatise(self, data: int) -> AnyArray:
        vector = np.random.choice([1, 0], size=self.d, p=[0.3, 0.7])  # noqa: NPY002
        vector[self.index_mapper(data)] = random.random() < 0.5
        return vector


def test_pure_ldp_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    client = as_target(StandInPureLdp(1.0, 4))
    assert client.records == (1, 2, 3, 4)
    assert client.claim == PureDP(1.0)
    assert draw(client).shape == (12, 4)
    with pytest.raises(TargetError, match="does not tell its records"):
        as_target(StandInPureLdp(1.0, 4, index_mapper={"a": 0, "b": 1}.__getitem__))
    module = types.ModuleType("pure_ldp.frequency_oracles")
    module.UEClient = StandInPureLdp  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pure_ldp", types.ModuleType("pure_ldp"))
    monkeypatch.setitem(sys.modules, "pure_ldp.frequency_oracles", module)
    built = as_target(adapters.pure_ldp("OUE", epsilon=1.0, d=4))
    assert built.name == "OUE(epsilon=1.0, d=4)"
    assert repeats(built)
    assert np.array_equal(draw(pickle.loads(pickle.dumps(built))), draw(built))
    with pytest.raises(TargetError, match=r"UEClient also needs d\."):
        adapters.pure_ldp("SUE", epsilon=1.0)
    with pytest.raises(TargetError, match="has no protocol 'XYZ' here; there are DE"):
        adapters.pure_ldp("XYZ", epsilon=1.0)


def stand_in_ss(input_data: int, k: int, epsilon: float) -> AnyArray:
    return np.random.permutation(k)[:2]  # noqa: NPY002


def test_multi_freq_ldpy_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("multi_freq_ldpy", "multi_freq_ldpy.pure_frequency_oracles"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = types.ModuleType("multi_freq_ldpy.pure_frequency_oracles.SS")
    module.SS_Client = stand_in_ss  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapted = adapters.multi_freq_ldpy("SS", k=4, epsilon=1.0)
    target = as_target(adapted)
    assert target.records == (0, 1, 2, 3)
    assert target.claim == PureDP(1.0)
    assert repeats(target)
    assert draw(target).shape == (12, 2)
    assert np.all(np.diff(draw(as_target(adapted, post=sorted)), axis=1) > 0)
    with pytest.raises(TargetError, match="has no parameter d; it has k, epsilon"):
        adapters.multi_freq_ldpy("SS", d=4, epsilon=1.0)


@pytest.mark.parametrize("library", ["pure_ldp", "multi_freq_ldpy"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TargetError, match=r"cannot be imported"):
        getattr(adapters, library)("OUE", epsilon=1.0)


class StandInDiffprivlib:
    """The shape of diffprivlib 0.6: keyword arguments kept as attributes, `randomise`, its own randomness."""

    def __init__(self, *, epsilon: float, delta: float = 0.0, sensitivity: float, random_state: Any = None) -> None:
        self.epsilon, self.delta, self.sensitivity, self.random_state = epsilon, delta, sensitivity, random_state
        secure = random_state is None
        self._rng: Any = secrets.SystemRandom() if secure else random_state
        if isinstance(random_state, int):
            self._rng = np.random.RandomState(random_state)

    def randomise(self, value: float) -> float:
        return value + float(self._rng.random())


def test_diffprivlib_mechanisms() -> None:
    plain = as_target(StandInDiffprivlib(epsilon=1.0, sensitivity=1.0), [0.0, 1.0])
    assert not plain.reproducible
    assert not repeats(plain)
    assert draw(pickle.loads(pickle.dumps(plain))).shape == (12,)
    seeded = as_target(StandInDiffprivlib(epsilon=1.0, sensitivity=1.0, random_state=1), [0.0, 1.0])
    assert seeded.reproducible
    assert repeats(seeded)
    assert not np.any(draw(seeded, 1) == draw(seeded, 2))  # blocks do not repeat the stream of the mechanism's seed
    assert np.array_equal(draw(pickle.loads(pickle.dumps(seeded))), draw(seeded))
    assert seeded.claim == PureDP(1.0)
    far = as_target(StandInDiffprivlib(epsilon=1.0, sensitivity=1.0), [0.0, 5.0])
    assert far.claim is None  # it promises nothing of records further apart than its sensitivity


# Outputs


@pytest.mark.parametrize(
    ("outputs", "kind", "shape"),
    [
        ([1, 2, 3], "i", (3,)),
        ([1, 2.5], "O", (2,)),  # a reader can tell 1 from 1.0
        ([1.0, np.float32(2)], "O", (2,)),
        ([True, False], "b", (2,)),
        ([np.float64(1), 2.0], "f", (2,)),
        ([[1], [1, 2]], "O", (2,)),
        ([[1, [2]], [1, [2]]], "O", (2,)),
        ([{"a": 1}, {"a": 2}], "O", (2,)),
        ([[1, 2], [3, 4]], "i", (2, 2)),
        ([np.array([1.0, 2.0])] * 3, "f", (3, 2)),
        ([[True, False]], "b", (1, 2)),
        ([np.zeros((2, 2))] * 3, "f", (3, 2, 2)),
        (["a", "b"], "O", (2,)),
        (["a", 1], "O", (2,)),
        ([(1, 2), (3, 4)], "O", (2,)),
        ([(1, 2), (3,)], "O", (2,)),
        ([{1, 2}, set()], "O", (2,)),
        ([["a", "b"], ["c", "d"]], "O", (2,)),
        ([(np.array([1, 2]), 3), ([1, 2], 3)], "O", (2,)),
        ([2**70, 1], "O", (2,)),
        ([2**63, -1], "O", (2,)),
        ([[2**63, -1]], "O", (1,)),
        ([None, "a"], "O", (2,)),
        (np.arange(6).reshape(3, 2), "i", (3, 2)),
        ([], "O", (0,)),
    ],
)
def test_outputs_become_arrays(outputs: Any, kind: str, shape: tuple[int, ...]) -> None:
    array = as_outputs(outputs)
    assert (array.dtype.kind, array.shape) == (kind, shape)
    if kind == "O":
        assert len({*array}) <= len(array)  # all can be counted


def test_outputs_keep_their_values() -> None:
    assert list(as_outputs([2**63, -1])) == [2**63, -1]
    assert list(as_outputs(["a\0", "a"])) == ["a\0", "a"]  # numpy's text would cut the first
    one, two = as_outputs([(np.array([1, 2]), np.int64(3)), ([1, 2], 3)])
    assert one == two == ((1, 2), 3)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([object()], "equal to no other"),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(outputs: Any, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        as_outputs(outputs)


# Recorded outputs


def test_recorded_outputs_from_files_and_tables(tmp_path: Path) -> None:
    rows = {"record": ["b", "a", "b"], "output": [1.5, 2.0, -1e-3]}
    (tmp_path / "runs.csv").write_text("record,output\nb,1.5\na,2\nb,-1e-3\n")
    pl.DataFrame(rows).write_parquet(tmp_path / "runs.parquet")
    for source in (tmp_path / "runs.csv", str(tmp_path / "runs.parquet"), rows, pd.DataFrame(rows), pl.DataFrame(rows)):
        runs = recorded(source)
        assert runs.labels == ("a", "b")
        assert runs.records.tolist() == [1, 0, 1]
        assert runs.outputs.tolist() == [1.5, 2.0, -1e-3]
    assert recorded(rows, labels=["c", "b", "a"]).records.tolist() == [1, 2, 1]
    (tmp_path / "sheet.csv").write_text("Record;Output\nb;1\na;0\n")
    assert recorded(tmp_path / "sheet.csv").labels == ("a", "b")
    assert recorded(rows, labels=["c", "b", "a"]).size == 3


def test_recorded_columns_of_many_kinds() -> None:
    assert recorded({"record": [0, 1], "x": [1, 2], "y": [0.5, 1]}).outputs.shape == (2, 2)
    assert list(recorded({"record": [0, 1], "x": [1, 2], "y": ["s", "t"]}).outputs) == [(1, "s"), (2, "t")]
    assert list(recorded({"record": ["0", "1"], "output": ["007", "7"]}).outputs) == ["007", "7"]
    assert recorded({"record": ["10", "9"], "output": ["1", "2"]}).labels == (9, 10)


@pytest.mark.parametrize(
    ("cells", "outputs"),
    [
        ((" 0.53", "0.53", "0.7"), [" 0.53", "0.53", "0.7"]),
        (("+0.53", "0.53", "0.7"), ["+0.53", "0.53", "0.7"]),
        (("1_0", "10", "11"), ["1_0", "10", "11"]),
        (("yes", "yes ", "no"), ["yes", "yes ", "no"]),
        ((" 0.53", " 0.53", " -1e3"), [0.53, 0.53, -1000.0]),
        (("+0.53", "+0.53", "-1.0"), [0.53, 0.53, -1.0]),
        (("  0.5", "-10.5", "  2.0"), [0.5, -10.5, 2.0]),
        ((" yes", " yes", " no"), ["yes", "yes", "no"]),
        (("3", "3.0", "4"), ["3", "3.0", "4"]),
        (("0.21", "0.310", "0.44"), ["0.21", "0.310", "0.44"]),
        (("0.5", ".6"), ["0.5", ".6"]),
        (("3", "3.", "4"), ["3", "3.", "4"]),
        (("NaN", "nan", "0.5"), ["NaN", "nan", "0.5"]),
        (("inf", "-Infinity"), ["inf", "-Infinity"]),
        (("1e-05", "2E-05"), ["1e-05", "2E-05"]),
        (("1e-05", "2e-5"), ["1e-05", "2e-5"]),
        (("1e+20", "2e20"), ["1e+20", "2e20"]),
        (("0.5", "5e-1", "0.4", "0.6"), ["0.5", "5e-1", "0.4", "0.6"]),
        (("0.00012", "1.3e-04", "0.5"), ["0.00012", "1.3e-04", "0.5"]),
        (("1,000", "2000"), ["1,000", "2000"]),
        (("0.1", "0.1000000000000000001"), ["0.1", "0.1000000000000000001"]),
        (("1.0e-05", "2e-05", "3.0"), ["1.0e-05", "2e-05", "3.0"]),
        (("0.210", "0.310", "-1.500"), [0.21, 0.31, -1.5]),
        (("3", "3.5", "-0.25", "1e-05"), [3.0, 3.5, -0.25, 1e-5]),
        (("3.0", "3.5", "-0.25", "1e-05", "nan", "-inf"), [3.0, 3.5, -0.25, 1e-5, math.nan, -math.inf]),
        (("3.0", "1.0E-5", "1.5E10"), [3.0, 1e-5, 1.5e10]),
        (("1e+05", "123456", "2e-04", "0.00012"), [1e5, 123456.0, 2e-4, 0.00012]),
        (("-0", "0", "1"), [-0.0, 0.0, 1.0]),
    ],
)
def test_recorded_cells_that_are_written_differently_are_different(
    cells: tuple[str, ...], outputs: list[Any], tmp_path: Path
) -> None:
    """How a number is written may tell the record; spaces that all cells have, or that align them, do not."""
    (tmp_path / "runs.csv").write_text("record;output\n" + "".join(f" a;{cell}\n" for cell in cells))
    runs = recorded(tmp_path / "runs.csv")
    assert list(map(repr, runs.outputs.tolist())) == list(map(repr, outputs))  # nan, and the sign of zero
    assert runs.labels == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("person,output\na,1\n", "needs a column `record`; it has person, output"),
        ("record\na\n", "needs a column `output`"),
        ("record,output\na,1\nb,\n", r"empty cells \(1 of 2\); write a word there, such as `none`"),
        ("record,output\na,1\nb,\nb,1.0\n", r"empty cells \(1 of 3\); write a word there, such as `none`"),
        ("record,output\n", "no records"),
    ],
)
def test_recorded_files_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(InputFileError, match=message):
        recorded(tmp_path / "runs.csv")


WRITERS: dict[str, Callable[[float], str]] = {
    "Python": repr,
    "fixed": "{:.3f}".format,
    "whole": "{:.0f}".format,
    "signed": "{:+.2f}".format,
    "C": "{:g}".format,
    "Excel": "{:.15g}".format,
    "powers": "{:.4e}".format,
}


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("writer", [*WRITERS, "pandas", "polars"])
def test_recorded_numbers_that_one_program_wrote_stay_numbers(tmp_path: Path, writer: str, scale: float) -> None:
    numbers, path = (np.random.default_rng(3).laplace(scale=scale, size=2000)).tolist(), tmp_path / "runs.csv"
    rows = {"record": [0] * len(numbers), "output": numbers}
    if writer == "pandas":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif writer == "polars":
        pl.DataFrame(rows).write_csv(path)
    else:
        path.write_text("record,output\n" + "".join(f"0,{WRITERS[writer](number)}\n" for number in numbers))
    assert recorded(path).outputs.dtype.kind in "if"


def uneven(number: float, rng: np.random.Generator) -> str:
    return f"{number:.3f}" if rng.random() < 0.1 else f"{number:.2f}"


@pytest.mark.parametrize(
    ("leak", "verdict"),
    [
        (lambda record, rng: "3" if record else "3.0", "violated"),
        (lambda record, rng: f"{rng.laplace():.2f}" + "0" * (record and rng.random() < 0.1), "violated"),
        (lambda record, rng: uneven(record + rng.laplace(scale=0.4), rng), "violated"),
        (lambda record, rng: f"{uneven(record + rng.laplace(scale=0.4), rng)},{rng.normal()}", "violated"),
        (lambda record, rng: "none" if record and rng.random() < 0.2 else f"{rng.laplace():.4f}", "violated"),
        (lambda record, rng: uneven(record + rng.laplace(), rng), "consistent with the claim"),
    ],
)
def test_what_unevenly_written_numbers_tell_is_found(
    tmp_path: Path, leak: Callable[[int, np.random.Generator], str], verdict: str
) -> None:
    """By how they are written, by the numbers themselves, and no alarm where neither tells more than is claimed."""
    rng = np.random.default_rng(7)
    rows = [f"{record},{leak(record, rng)}\n" for record in rng.integers(2, size=4000).tolist()]
    header = "record,output,more\n" if rows[0].count(",") == 2 else "record,output\n"
    (tmp_path / "runs.csv").write_text(header + "".join(rows))
    assert audit_recorded(recorded(tmp_path / "runs.csv"), 1.0).verdict == verdict


def test_recorded_parquet_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "runs.parquet").write_text("no parquet")
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        recorded(tmp_path / "runs.parquet")
    with pytest.raises(InputFileError, match="not among the labels"):
        recorded({"record": [1, 2], "output": [1, 2]}, labels=[1])
    with pytest.raises(InputFileError, match="unequal length"):
        recorded({"record": [1, 2], "output": [1]})


# --- blocks read part by part ---


def noisy_row(record: int, rng: np.random.Generator) -> Any:
    return [record + random.random(), float(np.random.random()), rng.random()]  # noqa: NPY002


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("step", [1, 7, 30, 100])
def test_a_block_is_the_same_however_many_outputs_are_held_at_once(step: int, batch: bool) -> None:
    def code(records: Any, rng: np.random.Generator) -> Any:
        return [noisy_row(record, rng) for record in records] if batch else noisy_row(records, rng)

    target, numbers = as_target(code, 3, batch=batch), np.arange(30) % 3
    parts = list(target.stream(numbers, step, np.random.default_rng(1)))
    assert len(parts) == (1 if batch else -(-30 // step))
    assert np.array_equal(np.concatenate(parts), target.sample(numbers, np.random.default_rng(1)))
    assert target.sample(np.array([], dtype=int), np.random.default_rng(1)).size == 0


def test_an_error_late_in_a_block_is_told_and_repeated() -> None:
    def code(record: int, rng: np.random.Generator) -> float:
        return 1 / (rng.random() > 0.002 or record != 2)

    target: Any = as_target(code, 3)
    with pytest.raises(AuditedCodeError) as caught:
        list(target.stream(np.arange(3000) % 3, 20, np.random.default_rng(3)))
    error = caught.value
    assert len(error.records) > 20
    assert (error.record, error.records[-1]) == (2, 2)
    assert f"run {len(error.records)} of its block" in str(error)
    assert target.repeat(error.records[:-1], error.seed).shape == (len(error.records) - 1,)
    with pytest.raises(AuditedCodeError, match=f"run {len(error.records)} of its block"):
        target.repeat(error.records, error.seed)


def test_a_block_that_is_not_read_to_the_end_leaves_nothing_seeded() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    parts = as_target(noisy_row, 3).stream(np.arange(3), 1, np.random.default_rng(1))
    next(parts)
    assert random.getstate() != before[0]
    parts.close()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]  # noqa: NPY002
    with kept, kept:
        as_target(noisy_row, 3).sample(np.arange(3), np.random.default_rng(1))
        assert random.getstate() != before[0]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]  # noqa: NPY002


@pytest.mark.parametrize(
    ("outputs", "wanted"),
    [
        ([[True, False], [False, False]], np.array([[True, False], [False, False]])),
        ([[1, 0], [0, 2]], np.array([[1, 0], [0, 2]])),
        ([[1.5, 0.0], [0.5, 2.0]], np.array([[1.5, 0.0], [0.5, 2.0]])),
        ([[np.float64(0.5), 1.0], [0.5, 2.0]], np.array([[0.5, 1.0], [0.5, 2.0]])),
        ([[np.True_], [np.False_]], np.array([[True], [False]])),
        ([[True], [np.False_]], np.array([[True], [False]])),
        ([[[True]], [[False]]], np.array([[[True]], [[False]]])),
        ([np.array(3), np.array(4)], np.array([3, 4])),
        ([np.eye(2), np.ones((2, 2))], np.stack([np.eye(2), np.ones((2, 2))])),
        ([np.array([1.0]), np.array([0.5])], np.array([[1.0], [0.5]])),
        ([[], []], np.fromiter([(), ()], dtype=object)),
        ([1.5, 2.0], np.array([1.5, 2.0])),
        ([3, 2**62], np.array([3, 2**62])),
        ([False, True], np.array([False, True])),
    ],
)
def test_quick_ways_to_stack_outputs_change_nothing(outputs: list[Any], wanted: AnyArray) -> None:
    made = as_outputs(outputs)
    assert np.array_equal(made, wanted)
    assert (made.dtype.kind, made.shape) == (wanted.dtype.kind, wanted.shape)
    assert made.flags.writeable


def test_numbers_beyond_64_bits_stay_exact_in_rows() -> None:
    assert as_outputs([[2**70, 1], [2**70 + 1, 1]]).tolist() == [(2**70, 1), (2**70 + 1, 1)]
    assert as_outputs([2**70, 2**70 + 1]).tolist() == [2**70, 2**70 + 1]


def slow(record: int, rng: np.random.Generator) -> int:
    time.sleep(0.0005 * record)
    return int(rng.integers(2))


@pytest.mark.slow
def test_time_is_an_output_on_request() -> None:
    assert audit(slow, 1.0, records=[0, 1], runs=2000).verdict == "consistent with the claim"
    target = as_target(slow, [0, 1], timing=True)
    assert not target.reproducible
    assert audit(target, 1.0, runs=2000).verdict == "violated"
    with pytest.raises(TargetError, match="leave out timing, or batch"):
        as_target(slow, [0, 1], timing=True, batch=True)


class Foreign:
    """Answers whatever it is asked for, as handles of foreign libraries do."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "rng") if name == "rng" else 0


def test_what_code_holds_may_answer_anything() -> None:
    foreign = Foreign(np.random.default_rng())

    def code(record: int) -> float:
        return float(record + foreign.rng.normal())

    target = as_target(code, records=2)
    assert target.reproducible
    assert repeats(target)
