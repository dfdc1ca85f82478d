"""A column that people randomise, and attackers who know others: against the definitions, written out row by row."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import GRR, OLH, OUE, Laplace, Prior, PureDP, SubsetSelection, Survey, Threat, assess, audit, calibrate
from dprisk.catalogue import MECHANISMS
from dprisk.errors import DpriskError
from dprisk.exact import advantage_by_record, theorem
from dprisk.mechanisms import OnAttribute
from tests.naive import theorem_4_3
from tests.strategies import set_protocols
from tests.typed import run

PEOPLE: dict[str, list[Any]] = {
    "sex": ["f", "f", "f", "f", "m", "m", "m", "m", "m"],
    "age": [30, 30, 30, 60, 30, 60, 60, 60, 60],
    "ill": ["flu", "flu", "HIV", "none", "flu", "none", "none", "flu", "none"],
}
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=12)


@pytest.mark.slow
@given(data=st.data(), rows=ROWS)
def test_the_risk_is_that_of_the_definition(data: st.DataObject, rows: list[tuple[str, int]]) -> None:
    """Every person a row, every output a column: the attacker knows the first entry and wants the second."""
    survey = Survey.from_table({"known": [a for a, _ in rows], "asked": [v for _, v in rows]}, "asked", ["known"])
    protocol = data.draw(set_protocols(survey.size))
    counts = Counter(rows)
    records = sorted(counts)
    prior = np.array([counts[row] for row in records]) / len(rows)
    groups = np.unique([a for a, _ in records], return_inverse=True)[1]
    right = np.array([[guess[1] == record[1] for record in records] for guess in records])
    channel = protocol.matrix()[[survey.values.index(value) for _, value in records]]
    mechanism, threat = survey.randomised(protocol), survey.threat()
    assert mechanism.labels == threat.prior.labels == tuple(records)
    risk = assess(mechanism, threat)
    assert risk.exact
    assert (risk.advantage, risk.success) == pytest.approx(theorem_4_3(channel, prior, groups, right), abs=1e-12)
    assert mechanism.matrix() == pytest.approx(channel)


@pytest.mark.slow
@given(data=st.data(), rows=ROWS, unused=st.integers(0, 2))
def test_sets_of_an_attribute_agree_with_the_list_of_outputs(
    data: st.DataObject, rows: list[tuple[str, int]], unused: int
) -> None:
    """Also where the mechanism has values that nobody has, and for the advantage on each record, ties included."""
    records = sorted(set(rows))
    values = [value for _, value in records]
    protocol = data.draw(set_protocols(max(values) + 1 + unused))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(records), max_size=len(records)).filter(any))
    threat = Survey("asked", ("known",), dict(zip(records, weights, strict=True))).threat()
    mechanism = OnAttribute(protocol, values)
    found, listed = assess(mechanism, threat).optimum, theorem.enumerate_outputs(mechanism, threat)
    assert found.by == "sets of an attribute"
    assert found.advantage_by_group == pytest.approx(listed.advantage_by_group, abs=1e-12)
    assert found.success_by_group == pytest.approx(listed.success_by_group, abs=1e-12)
    by_record = theorem.enumerate_by_record(mechanism, threat)
    positive = threat.prior.weights > 0  # what the attacker gains on a record that nobody has is a matter of taste
    assert advantage_by_record(mechanism, threat)[positive] == pytest.approx(by_record[positive], abs=1e-9)


@pytest.mark.parametrize("kind", [OUE, SubsetSelection, OLH])
def test_many_values_stay_exact(kind: Callable[[int, float], OUE]) -> None:
    """Beyond any list of outputs; and noise can be calibrated for it."""
    rng = np.random.default_rng(1)
    table = {"known": rng.integers(4, size=3000), "asked": rng.zipf(1.5, size=3000) % 200}
    survey = Survey.from_table(table, "asked", "known")
    mechanism, threat = survey.randomised(kind(survey.size, 1.0)), survey.threat()
    risk = assess(mechanism, threat)
    assert risk.exact
    assert 0 < risk.advantage <= assess(PureDP(1.0), threat).advantage
    found = calibrate(mechanism, threat, advantage=risk.advantage)
    assert found.value == pytest.approx(1.0, abs=1e-6)


def test_knowing_nothing_is_the_column_alone() -> None:
    prior = Prior.from_column(PEOPLE["ill"])
    for knows in ((), "none"):
        survey = Survey.from_table(PEOPLE, "ill", knows)
        assert survey.threat() == Threat.reconstruction(prior)
        assert survey.randomised(GRR(3, 1.0)) == GRR(3, 1.0).labelled(prior.labels)
    survey = Survey.from_table(PEOPLE, "ill", "all")
    assert survey.threat() == Threat.membership(prior)
    assert assess(survey.randomised(GRR(3, 1.0)), survey.threat()) is not None


@pytest.mark.parametrize("knows", ["none", "all", ["sex"], ["sex", "age"]])
def test_a_uniform_prior_is_over_all_values_in_each_group(knows: Any) -> None:
    """Whether they occur there or not; how many people each group has is no secret."""
    survey = Survey.from_table(PEOPLE, "ill", knows)
    even = survey.uniform()
    known = [] if isinstance(knows, str) else knows
    groups = Counter(zip(*(PEOPLE[name] for name in known), strict=True)) if known else Counter({(): 9})
    assert even.people == survey.people == 9
    assert even.counts == {(*group, ill): n / 3 for group, n in groups.items() for ill in ("HIV", "flu", "none")}
    mechanism, threat = even.randomised(GRR(3, 1.0)), even.threat()
    p, q = np.e / (np.e + 2), 1 / (np.e + 2)
    risk = assess(mechanism, threat)
    assert risk.baseline == pytest.approx(1.0 if knows == "all" else 1 / 3)
    assert risk.advantage == pytest.approx((p - q) * (1 - 1 / 3))


def test_a_number_may_be_wanted_roughly() -> None:
    survey = Survey.from_table(PEOPLE, "age", knows=["sex"])
    near = assess(survey.randomised(Laplace([30, 60], 1.0)), survey.threat(within=30))
    assert (near.advantage, near.baseline) == pytest.approx((0.0, 1.0), abs=1e-15)
    whole = Threat.attributes({name: PEOPLE[name] for name in ("sex", "age")}, known=["sex"], secret=["age"])
    exactly = assess(survey.randomised(Laplace([30, 60], 1.0)), survey.threat())
    wrapped = OnAttribute.by_label(Laplace([30, 60], 1.0).labelled([30, 60]), whole.column("age"))
    assert exactly.advantage == assess(wrapped, whole).advantage


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_files_and_frames_are_the_same(tmp_path: Path, frame: Callable[[object], object]) -> None:
    path = tmp_path / "people.csv"
    lines = ["Sex;Age;ILL;remark", *(";".join([*map(str, row), "x"]) for row in zip(*PEOPLE.values(), strict=True))]
    path.write_text("\n".join(lines))
    read = Survey.from_csv(path, "ill", knows=["age", "sex"])
    made = Survey.from_table(frame(PEOPLE), "ill", knows=["age", "sex"])
    assert (read.counts, read.values, read.people) == (made.counts, ("HIV", "flu", "none"), 9)
    assert repr(read) == "Survey(ILL: 3 values, 9 people, the attacker knows Age, Sex)"
    one, two = (assess(it.randomised(OUE(3, 1.0)), it.threat()) for it in (read, made))
    assert one.advantage == two.advantage


def test_a_calibrated_view_sees_the_same_values() -> None:
    """Values are numbers of the mechanism's records: made again with another epsilon, they stay what they were."""
    survey = Survey.from_table({"known": list(range(20)), "asked": [9, 7, 5, 3] * 5}, "asked", "known")
    mechanism = survey.randomised(GRR(4, 1.0))
    assert isinstance(mechanism, OnAttribute)
    other = mechanism.with_parameter(2.0)
    assert np.array_equal(other.values, mechanism.values)
    assert other.labels == mechanism.labels
    assert mechanism.to_dict()["values"] == mechanism.values.tolist() == [3, 2, 1, 0] * 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Survey.from_table(PEOPLE, "job"), "needs one column 'job'; it has 'sex', 'age', 'ill'"),
        (lambda: Survey.from_table(PEOPLE, "ill", ["ill"]), "'ill' cannot be known and asked for"),
        (lambda: Survey.from_table(PEOPLE, 3), "given by its name, got 3"),  # type: ignore[arg-type]
        (lambda: Survey.from_table({"ill": []}, "ill"), "no rows"),
        (lambda: Survey.from_table({"ill": ["a", None]}, "ill"), r"The column 'ill' has missing values \(1 of 2\)"),
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR(4, 1.0)), "'ill' has 3 values, the mechanism takes 4"),
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR), r"make one: GRR\(size, epsilon\)"),  # type: ignore[arg-type]
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR(3, 1.0).labelled("abc")), "not the values of 'ill'"),
        (
            lambda: assess(GRR(3, 1.0), Survey.from_table(PEOPLE, "ill", ["sex"]).threat()),
            "3 records, the prior has 5; those are the rows of a table: if the mechanism sees one column of them, wrap",
        ),
    ],
)
def test_wrong_input_gets_one_clear_sentence(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


# The command


HOSPITAL = "Sex;Age;Diagnosis\n" + "".join(
    f"{sex};{age};{ill}\n"
    for sex, age, ill, people in (
        ("f", "30-49", "asthma", 9),
        ("f", "30-49", "HIV", 1),
        ("f", "50+", "diabetes", 12),
        ("m", "30-49", "asthma", 6),
        ("m", "30-49", "diabetes", 2),
        ("m", "50+", "diabetes", 14),
        ("m", "50+", "HIV", 1),
    )
    for _ in range(people)
)


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    path = tmp_path / "hospital.csv"
    path.write_text(HOSPITAL)
    return path


@pytest.mark.parametrize("name", ["grr", "oue", "ss", "olh", "the"])
@pytest.mark.parametrize("knows", ["none", "all", "sex", "sex,AGE"])
def test_the_command_ends_in_the_numbers_of_the_library(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path, name: str, knows: str
) -> None:
    table = f"--mechanism {name} --data {hospital} --column diagnosis --knows {knows} --json"
    survey = Survey.from_csv(hospital, "diagnosis", knows if knows in ("none", "all") else knows.split(","))
    mechanism = survey.randomised(MECHANISMS[name].make({"epsilon": 1.0}, survey.size))
    told = json.loads(run(capsys, monkeypatch, *f"assess {table} --epsilon 1".split())[1])
    risk = assess(mechanism, survey.threat())
    for key in ("advantage", "success", "baseline"):
        assert told[key] == pytest.approx(getattr(risk, key), abs=1e-14)
    assert told["exact"] is risk.exact is True
    assert told["about"].startswith(f"{survey.describe()}; the prior is how common each row is in")
    assert told["inputs"]["column"] == "diagnosis"
    told = json.loads(run(capsys, monkeypatch, *f"calibrate {table} --advantage 0.05".split())[1])
    assert told["epsilon"] == pytest.approx(calibrate(mechanism, survey.threat(), advantage=0.05).value, rel=1e-12)


def test_the_command_takes_a_uniform_prior_and_warns_of_one_that_tells_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path
) -> None:
    line = f"assess --mechanism oue --epsilon 1 --data {hospital} --column Diagnosis --knows Sex,Age --json".split()
    survey = Survey.from_csv(hospital, "Diagnosis", ["Sex", "Age"])
    told = json.loads(run(capsys, monkeypatch, *line)[1])
    assert told["about"].endswith(
        "hospital.csv. 1 of 4 groups holds one possible row: the prior from the file already tells their value"
    )
    told = json.loads(run(capsys, monkeypatch, *line, "--prior", "uniform")[1])
    assert told["about"].endswith(
        "the prior is uniform: every value of Diagnosis is equally likely in each of 4 groups, which are as common as "
        f"in {hospital}"
    )
    even = survey.uniform()
    assert told["advantage"] == assess(even.randomised(OUE(3, 1.0)), even.threat()).advantage
    assert told["baseline"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("prior", "warning"),
    [
        ("", "That already tells ill of everybody: nothing is left to find out, with any noise"),
        (" --prior uniform", "(there is one, so that nothing is left to find out)"),
    ],
)
def test_the_command_warns_of_a_table_with_one_row(
    prior: str, warning: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text("ill,sex\nflu,f\n")
    line = f"--mechanism grr --data {tmp_path / 'one.csv'} --column ill --knows sex{prior}"
    told = run(capsys, monkeypatch, *f"assess {line} --epsilon 1".split())[1]
    assert told.startswith("ill: 1 value, 1 person, the attacker knows sex")
    assert warning in told.splitlines()[0]
    assert told.splitlines()[-1].endswith("so that these numbers say nothing of the noise.")
    assert warning in run(capsys, monkeypatch, *f"calibrate {line} --advantage 0.1".split())[1]


def test_what_looks_like_a_slip_in_a_table_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spaces are trimmed; what is a matter of opinion is left as it is, with a hint."""
    people = tmp_path / "people.csv"
    people.write_text("ill,34\nFlu,51\nflu,29\nNaN,29\nHIV,51\n")
    hints = [
        "The name of the column `34` looks like a value: the file may lack a header row",
        "`Flu` and `flu` of ill count as different values",
        "`NaN` of ill counts as a value like any other",
    ]
    line = f"assess --mechanism grr --epsilon 1 --data {people} --column ill --knows 34 --json"
    about = json.loads(run(capsys, monkeypatch, *line.split())[1])["about"]
    assert about.endswith(". ".join(["", *hints]))
    plan = tmp_path / "plan.toml"
    noise = 'noise = { kind = "laplace", epsilon = 1.0 }'
    plan.write_text(
        f'data = "people.csv"\nquery = {{ kind = "histogram", column = "ill" }}\nuniverse = "data"\n{noise}\n'
    )
    about = json.loads(run(capsys, monkeypatch, "assess", "--release", str(plan), "--json")[1])["about"]
    assert about.endswith(". ".join(["", *hints[1:], hints[0]]))
    people.write_text("ill,age\nflu,51\nHIV,29\n")
    assert Survey.from_csv(people, "ill", ["age"]).doubts == []


def test_a_guarantee_and_a_number_of_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path, tmp_path: Path
) -> None:
    line = f"assess --guarantee pure --epsilon 1 --data {hospital} --column Diagnosis --knows Sex --json"
    threat = Survey.from_csv(hospital, "Diagnosis", ["Sex"]).threat()
    told = json.loads(run(capsys, monkeypatch, *line.split())[1])
    assert told["advantage"] == assess(PureDP(1.0), threat).advantage
    assert told["about"].startswith("Diagnosis: 3 values, 45 people, the attacker knows Sex; the prior is how common")
    assert told["threat"]["knows"] == "Sex (one of 2 groups)"
    path = tmp_path / "stays.csv"
    path.write_text("ward,days\nA,1\nA,2\nB,7\nB,30\nB,2\n")
    line = f"assess --mechanism laplace --epsilon 2 --data {path} --column days --knows ward --within 1 --json"
    survey = Survey.from_csv(path, "days", "ward")
    risk = assess(survey.randomised(Laplace([1, 2, 7, 30], 2.0)), survey.threat(within=1))
    assert json.loads(run(capsys, monkeypatch, *line.split())[1])["advantage"] == pytest.approx(risk.advantage)


def test_an_audit_takes_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path
) -> None:
    table = f"--data {hospital} --column Diagnosis --knows Sex,Age"
    line = f"audit --mechanism grr --epsilon 2 {table} --runs 4000 --seed 3 --json"
    survey = Survey.from_csv(hospital, "Diagnosis", ["Sex", "Age"])
    report = audit(survey.randomised(GRR(3, 2.0)), threat=survey.threat(), runs=4000, seed=3)
    assert json.loads(run(capsys, monkeypatch, *line.split())[1])["epsilon_certified"] == report.epsilon_certified
    code, _, err = run(capsys, monkeypatch, *f"audit some.module:code --claim 1 {table}".split())
    assert (code, "the values of the --column alone; leave --knows out" in err) == (2, True)


def test_a_mechanism_on_whole_rows_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Groups in a file leave open what is randomised: the answer says that it is everything."""
    (tmp_path / "rows.csv").write_text("label,count\nf flu,3\nf HIV,1\nm flu,4\n")
    (tmp_path / "groups.csv").write_text("label,group\nf flu,f\nf HIV,f\nm flu,m\n")
    line = f"assess --mechanism grr --epsilon 1 --prior {tmp_path}/rows.csv --knows {tmp_path}/groups.csv"
    said = "The mechanism randomises the whole record, what the attacker knows of it included."
    assert said in run(capsys, monkeypatch, *line.split())[1]
    assert json.loads(run(capsys, monkeypatch, *line.split(), "--json")[1])["about"].startswith(said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--column Diagnosis", "--column is a column of a table: give that as --data."),
        ("--data {hospital}", "--column is missing: what is randomised? Of {hospital}, it has `Sex`, `Age`,"),
        (
            "--data {hospital} --column ill",
            "no column `ill`; it has `Sex`, `Age`, `Diagnosis`, separated by semi",
        ),
        ("--data {hospital} --column Sex --knows ward", "no column `ward`; it has `Sex`"),
        ("--data {hospital} --column Sex --knows sex", "'Sex' cannot be known and asked for"),
        ("--data {hospital} --column Sex --size 2", "--size has no meaning with --data: it follows from the table."),
        (
            "--data {hospital} --column Sex --prior zipf",
            "With --data the prior is how common each row is, or --prior uniform; got zipf.",
        ),
        ("--data {hospital} --column Sex --within 1 --space ring", "--space ring has no meaning with --data"),
        ("--data {hospital} --column Sex --within 1 --knows Age", "must be numbers"),
        ("--data nowhere.csv --column Sex", "There is no file nowhere.csv"),
        ("--size 3 --knows sex,age", "There is no file sex,age; --knows is none, all, or a CSV file, and with --data"),
    ],
)
def test_wrong_options_get_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path, options: str, message: str
) -> None:
    line = f"assess --mechanism grr --epsilon 1 {options.format(hospital=hospital)}"
    code, out, err = run(capsys, monkeypatch, *line.split())
    assert (code, out) == (2, "")
    assert message.format(hospital=hospital) in err
    assert len(err.strip().splitlines()) == 1


def test_noise_on_numbers_is_not_for_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hospital: Path
) -> None:
    line = f"assess --mechanism laplace --epsilon 1 --data {hospital} --column Diagnosis"
    assert "laplace is for numbers, but 'Diagnosis' holds 'HIV'" in run(capsys, monkeypatch, *line.split())[2]


@pytest.mark.parametrize(
    ("options", "noise"),
    [
        (["--mechanism", "laplace", "--epsilon", "1"], ". Laplace noise of scale 71"),
        (["--mechanism", "laplace", "--epsilon", "0.3"], ". Laplace noise of scale 236.7"),
        (["--mechanism", "discrete-laplace", "--epsilon", "1"], ". Discrete Laplace noise of scale 71"),
        (["--mechanism", "gaussian", "--sigma", "3"], ""),
    ],
)
def test_a_range_from_the_data_is_told_and_what_noise_follows(
    options: list[str],
    noise: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "p.csv").write_text("Age,Sex\n18,f\n89,m\n40,f\n41,m\n")
    _, told, _ = run(capsys, monkeypatch, "assess", *options, "--data", f"{tmp_path / 'p.csv'}", "--column", "Age")
    public = "The range, 18 to 89, comes from the data; the guarantee holds only if it is public"
    assert f"{noise}. {public}\n" in told
    goal = ["--advantage", "0.1", "--data", f"{tmp_path / 'p.csv'}", "--column", "Age"]
    _, told, _ = run(capsys, monkeypatch, "calibrate", *options[:2], *goal)
    assert f"{public}\n" in told
    _, told, _ = run(capsys, monkeypatch, "assess", "--mechanism", "grr", "--epsilon", "1", *goal[2:])
    assert "The range" not in told
