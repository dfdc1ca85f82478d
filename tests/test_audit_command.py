"""The command that audits: code, mechanisms, recorded outputs; and one sentence where code or words are at fault."""

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import ApproxDP
from dprisk.auditing import Look, Running, as_target, audit, audit_recorded, recorded
from dprisk.cli.audit import _records
from dprisk.errors import AuditedCodeError, InputFileError, ParameterError
from dprisk.mechanisms import GRR, Gaussian, Laplace
from tests.audited import Code, Rng, fails_in_a_worker, half_the_noise, hangs_in_a_worker, laplace, same
from tests.typed import run

# --- faults of the audited code ---

MODULE = """
import time
import numpy as np
from dprisk import GRR
from dprisk.auditing import central

mechanism = GRR(4, epsilon=1.0)

def total(data, rng):
    return sum(data) + rng.laplace(scale=1)

target = central(total, [0, 1, 1], records=[0, 1])

def unseeded(record):
    return record + np.random.default_rng().laplace(scale=9)

def privatise(record, rng):
    return round(1024 * (record + rng.laplace(scale=9))) / 1024

def broken(record, rng):
    return record + rng.laplace(scale=1)

def respond(record, rng):
    return record if rng.random() < 0.2 else int(rng.integers(10))

def many(records, rng):
    return records + rng.laplace(scale=9, size=len(records))

def crash(record, rng):
    return 1 / (record != 3 or rng.random() < 0.5)

def hang(record):
    if record == 3:
        time.sleep(60)
    return record
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").touch()
    (tmp_path / "mypkg" / "mod.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("mypkg", "mypkg.mod"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_crash_tells_how_to_repeat_it() -> None:
    def crash(record: int, rng: Rng) -> float:
        return 1 / (record != 3 or rng.random() < 0.5)

    line = crash.__code__.co_firstlineno + 1
    said = (
        rf"on record 3, .* ZeroDivisionError.*test_audit_command\.py, line {line}\)\. The same audit with the same seed"
    )
    with pytest.raises(AuditedCodeError, match=said) as caught:
        audit(crash, 1.0, records=range(5))
    assert caught.value.record == 3
    with pytest.raises(AuditedCodeError) as again:
        as_target(crash, 5).repeat(caught.value.records, caught.value.seed)  # type: ignore[attr-defined]
    assert str(again.value) == str(caught.value)


def test_failures_in_workers_are_told_as_well() -> None:
    with pytest.raises(AuditedCodeError, match="ZeroDivisionError") as caught:
        audit(fails_in_a_worker, 1.0, records=2, runs=2000, running=Running(n_jobs=2))
    assert caught.value.record in (0, 1)
    with pytest.raises(AuditedCodeError, match=r"within 0\.1 s"):
        audit(hangs_in_a_worker, 1.0, records=2, runs=1000, running=Running(n_jobs=2, timeout=0.1))


def test_a_time_limit_needs_processes() -> None:
    with ThreadPoolExecutor(2) as threads, pytest.raises(ParameterError, match="only the main thread"):
        audit(laplace, 1.0, records=2, runs=1000, running=Running(executor=threads, timeout=5))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), [("crash", "raised ZeroDivisionError"), ("hang", "within 0.2 s")])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command_ends_with_a_sentence_if_the_code_fails(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: Path,
    name: str,
    said: str,
    jobs: str,
) -> None:
    arguments = f"audit mypkg.mod:{name} --claim 1 --records 0..4 --timeout 0.2 --jobs {jobs}".split()
    code, out, error = run(capsys, monkeypatch, *arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert "record 3" in error
    assert "mod.py, line" in error
    assert len(error.splitlines()) == 1


# --- the command ---


def test_the_command_audits_a_mechanism(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "audit --mechanism oue --epsilon 4 --size 100 --runs 100000 --alpha 0.01 --seed 1 --json"
    arguments = text.split()
    code, out, _ = run(capsys, monkeypatch, *arguments)
    told = json.loads(out)
    assert code == 0
    assert told["verdict"] == "consistent with the claim"
    assert told["claim"] == pytest.approx(4.0)
    assert 3.9 < told["epsilon_certified"] <= 4
    assert {"epsilon_estimate", "runs", "answered", "e_value"} <= set(told)
    code, out, _ = run(capsys, monkeypatch, *arguments, "--claim", "3")
    assert (code, json.loads(out)["verdict"]) == (1, "violated")


@pytest.mark.parametrize(("name", "expected"), [("privatise", 0), ("broken", 1)])
def test_the_command_audits_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, name: str, expected: int
) -> None:
    arguments = f"audit mypkg.mod:{name} --claim 1.0 --records 0..9 --runs 3000".split()
    code, out, _ = run(capsys, monkeypatch, *arguments)
    assert code == expected
    assert ("breaks its promise" in out) == (expected == 1)


@pytest.mark.parametrize("arguments", ["mypkg.mod:target --claim 1", "mypkg.mod:target --claim 1 --family laplace"])
def test_the_command_takes_what_brings_its_own_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str
) -> None:
    code, out, _ = run(capsys, monkeypatch, "audit", *arguments.split(), "--runs", "2000")
    assert code == 0
    assert "total on 3 others" in out
    told = json.loads(run(capsys, monkeypatch, "audit", "mypkg.mod:mechanism", "--runs", "2000", "--json")[1])
    assert told["claim"] == 1.0


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("0,0.5,1", [0.0, 0.5, 1.0]),
        ("0,1e-3", [0.0, 0.001]),
        ("-1, 1", [-1, 1]),
        ("007,010", ["007", "010"]),
        ("low,2", ["low", "2"]),
        ("2..4", [2, 3, 4]),
    ],
)
def test_records_are_numbers_if_all_are(text: str, records: list[Any]) -> None:
    found = _records(text)
    assert found == records
    assert list(map(type, found)) == list(map(type, records))


def test_code_that_makes_its_own_generator_is_seen_not_to_repeat(package: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"records": [0, 1], "runs": 1000}
    report = audit("mypkg.mod:unseeded", 1.0, **given)
    assert not report.target["reproducible"]
    assert "same seed" in report.target["note"]
    assert audit("mypkg.mod:privatise", 1.0, **given).target["reproducible"]


def test_recorded_outputs_of_which_no_two_are_alike_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 2},{'ab'[k % 2]}\n" for k in range(100))
    (tmp_path / "runs.csv").write_text("id,record,output\n" + rows)
    with pytest.raises(InputFileError, match=r"No two outputs .* leave out columns"):
        audit_recorded(recorded(tmp_path / "runs.csv"), 1.0)


def test_a_mechanism_in_a_module_is_known_in_full(package: Path) -> None:
    report = audit("mypkg.mod:mechanism", runs=10_000)
    assert report.claim == ApproxDP(1.0, 0.0)
    assert "likelihood" in report.design.to_dict()["evidence"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_the_code_prints_is_no_part_of_the_report(package: Path, jobs: str) -> None:
    (package / "loud.py").write_text(
        "print('loading')\ndef code(record, rng):\n    print('running')\n    return round(record + rng.laplace())\n"
    )
    given = ["loud:code", "--records", "0,1", "--claim", "1", "--runs", "500", "--jobs", jobs, "--json"]
    told = subprocess.run([sys.executable, "-m", "dprisk", "audit", *given], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["runs"] == 500
    assert "loading" in told.stderr
    assert "running" in told.stderr


def recorded_runs(path: Path, code: Code, size: int = 2, runs: int = 6000) -> Path:
    rng = np.random.default_rng(5)
    rows = [(record, code(record, rng)) for record in rng.integers(size, size=runs).tolist()]
    path.write_text("record,output\n" + "".join(f"{record},{output}\n" for record, output in rows))
    return path


@pytest.mark.parametrize(("code", "expected"), [(laplace, 0), (half_the_noise, 1)])
def test_the_command_audits_recorded_outputs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: Code, expected: int
) -> None:
    path = recorded_runs(tmp_path / "runs.csv", code)
    assert run(capsys, monkeypatch, "audit", "--outputs", str(path), "--claim", "1.0")[0] == expected


@pytest.mark.slow
def test_recorded_outputs_raise_no_more_false_alarms_than_promised(tmp_path: Path) -> None:
    alpha, audits = 0.1, 100
    runs = recorded(recorded_runs(tmp_path / "runs.csv", laplace, runs=40_000))
    alarms = 0
    for k in range(audits):
        part = slice(400 * k, 400 * (k + 1))
        some = type(runs)(runs.records[part], runs.outputs[part], runs.labels, runs.name)
        alarms += audit_recorded(some, 1.0, alpha=alpha, seed=k).verdict == "violated"
    assert alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Give either --mechanism"),
        ("mypkg.mod:privatise --claim 1 --records 0,1,", "names an empty record"),
        ("mypkg.mod:privatise --claim 1 --records 0..999999999", "1000000000 possible records are too many"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --prior two.csv", "leave --records out"),
        ("mypkg.mod:privatise --mechanism grr", "Give either --mechanism"),
        ("--mechanism grr --epsilon 1 --size 5 --outputs runs.csv", "Give either --mechanism"),
        ("mypkg.mod:privatise --records 0..9", "--claim is missing"),
        ("mypkg.mod:privatise --claim 1", "--records is missing"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --size 10", "--size is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --epsilon 1", "--epsilon is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 9..0", "fewer than two records"),
        ("mypkg.mod:privatise --claim 1 --records a..b", "no range of whole numbers"),
        ("mypkg.mod:privatise --claim 1 --records 1", "at least two possible records"),
        ("mypkg.mod:privatise --claim 1 --records 1,1", "must differ"),
        ("mypkg.mod:privatise --claim -1 --records 0..9", "epsilon"),
        ("mypkg.mod:privatise --claim 1 --delta 2 --records 0..9", "delta"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --timeout 0", "timeout must be a positive"),
        ("mypkg.mod:privatize --claim 1 --records 0..9", "did you mean 'privatise'?"),
        ("mypkg.mud:privatise --claim 1 --records 0..9", "no module 'mypkg.mud'"),
        ("mypkg.mod --claim 1 --records 0..9", "package.module:function, got 'mypkg.mod'; did you mean 'mypkg:mod'?"),
        ("mypkg. --claim 1 --records 0..9", "package.module:function, got 'mypkg.'.\n"),
        ("mypkg/mod.py:privatise --claim 1 --records 0..9", "did you mean 'mypkg.mod:privatise'?"),
        ("mypkg/mod.py --claim 1 --records 0..9", "is a file; name a function in it, as in mod:function"),
        ("runs.csv --claim 1", "recorded runs are given as --outputs runs.csv"),
        ("mypkg.mod:target", "What does the code claim?"),
        ("mypkg.mod:target --family laplace", "--claim is missing"),
        ("mypkg.mod:target --claim 1 --records 0,1", "is a target already"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family none", "There is no mechanism 'none'"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family grr --epsilon 1", "--epsilon is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family grr --sigma 1", "--sigma has no meaning for grr"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family gaussian", "--sigma is missing"),
        ("mypkg.mod:privatise --claim 1 --records a,b --family laplace", "laplace adds noise to numbers"),
        (
            "mypkg.mod:privatise --claim 1 --records 0..9 --family matrix --matrix matrix.csv",
            "The family has 2 records",
        ),
        ("mypkg.mod:respond --claim 1 --records 0..9 --batch", "returned a int; batch=True needs"),
        (
            "mypkg.mod:privatise --claim 1 --records 0..9 --timeout 1 --cluster tcp://here:1",
            "leave it out with a --clus",
        ),
        ("mypkg.mod:mechanism --claim 1 --records 0..9 --batch", "takes no further options"),
        ("--mechanism grr --epsilon 1 --size 5 --family grr", "--family is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --batch", "--batch is for code"),
        ("--outputs runs.csv --claim 1 --family laplace", "--family has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --batch", "--batch has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --store audit.db", "--store has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --cluster tcp://here:1", "--cluster has no meaning with --outputs"),
        ("--mechanism grr --size 5", "--epsilon is missing"),
        ("--mechanism grr --epsilon 1", "--size is missing"),
        ("--mechanism grr --epsilon 1 --size 1", "at least two possible records"),
        ("--mechanism grr --epsilon 1 --size 5 --sigma 1", "--sigma has no meaning for grr"),
        ("--mechanism grr --epsilon 1 --size 5 --records 0..4", "--records is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --timeout 1", "--timeout is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --delta 0.1", "--delta is part of a claim"),
        ("--mechanism grr --epsilon 1 --size 5 --runs 0", "runs must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --jobs 0", "--jobs must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --seed -1", "seed must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --alpha 1", "must lie strictly between 0 and 1"),
        ("--mechanism grr --epsilon 1 --size 5 --jobs 2 --cluster tcp://here:1", "--jobs are local workers"),
        ("--mechanism none --size 5", "There is no mechanism 'none'"),
        ("--mechanism gaussian --sigma 1 --size 5", "Give a claim with a delta"),
        ("--mechanism matrix --matrix matrix.csv --size 5", "the matrix has 2"),
        ("--outputs runs.csv", "--claim is missing"),
        ("--outputs none.csv --claim 1", "none.csv"),
        ("--outputs runs.csv --claim 1 --runs 5", "--runs has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --epsilon 5", "--epsilon has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --stop-early", "--stop-early has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --alpha 0", "must lie strictly between 0 and 1"),
        ("--outputs one.csv --claim 1", "at least two records"),
        ("--outputs few.csv --claim 1", "too few runs to learn from"),
    ],
)
def test_misuse_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str, said: str
) -> None:
    recorded_runs(package / "runs.csv", laplace, runs=50)
    (package / "two.csv").write_text("label,count\n0,1\n1,2\n")
    (package / "one.csv").write_text("record,output\n1,1\n1,2\n")
    (package / "few.csv").write_text("record,output\n1,1\n2,2\n")
    (package / "matrix.csv").write_text("0.5,0.5\n0.2,0.8\n")
    code, out, error = run(capsys, monkeypatch, "audit", *arguments.split())
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "look"),
    [
        ("mypkg.mod:privatise --records 0..9 --family laplace", Look(family=Laplace(range(10), epsilon=1.0))),
        ("mypkg.mod:privatise --records 0,5,9 --family laplace", Look(family=Laplace([0, 5, 9], epsilon=1.0))),
        (
            "mypkg.mod:privatise --records 0,9 --delta 0.01 --family gaussian --sigma 9",
            Look(family=Gaussian([0, 9], sigma=9.0)),
        ),
        ("mypkg.mod:respond --records 0..9 --family grr --stop-early", Look(family=GRR(10, 1.0))),
        ("mypkg.mod:many --records 0..9 --batch --jobs 2", Look()),
        ("mypkg.mod:many --records 0..9 --batch --family laplace", Look(family=Laplace(range(10), 1.0))),
    ],
)
def test_the_command_takes_a_family_and_batches(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: Path,
    arguments: str,
    look: Look,
) -> None:
    code, *more = arguments.split()
    text = ["audit", code, "--claim", "1", "--runs", "3000", *more, "--store", "audit.db", "--json"]
    records = {"0..9": range(10), "0,9": [0, 9], "0,5,9": [0, 5, 9]}[more[1]]
    target = as_target(code, records, batch="--batch" in more)
    claim = ApproxDP(1.0, 0.01 if "--delta" in more else 0.0)
    expected = same(audit(target, claim, runs=3000, stop_early="--stop-early" in more, look=look))
    for _ in range(2):  # the second time from the store
        told = json.loads(run(capsys, monkeypatch, *text)[1])
        assert {key: told[key] for key in expected} == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--mechanism gaussian --sigma 4 --size 5 --claim 1 --delta 0.13 --runs 5000", 0),
        ("--mechanism gaussian --sigma 1.2 --size 5 --claim 1 --delta 0.13 --runs 5000", 1),
        ("--mechanism matrix --matrix matrix.csv --runs 2000", 0),
        ("--mechanism laplace --epsilon 1 --size 5 --runs 2000 --stop-early", 0),
    ],
)
def test_other_mechanisms_at_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str, expected: int
) -> None:
    (package / "matrix.csv").write_text("0.5,0.5\n0.2,0.8\n")
    assert run(capsys, monkeypatch, "audit", *arguments.split())[0] == expected
