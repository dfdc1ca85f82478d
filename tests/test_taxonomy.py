"""Threat models: every option expressible, files that read back as the same, rules, and broken files."""

import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprisk import GRR, OUE, ApproxDP, Knowledge, Prior, PureDP, Survey, Threat, assess, calibrate
from dprisk.documents import read_document
from dprisk.errors import DpriskError, InputFileError
from dprisk.population import Targets, at_most
from dprisk.release_files import read_release
from dprisk.taxonomy import (
    DIMENSIONS,
    RULES,
    Answered,
    Attacker,
    Choice,
    Kept,
    ThreatModel,
    Universe,
    answer,
    json_schema,
    make_plan,
    questions,
    read_threat_model,
    write_threat_model,
)
from dprisk.taxonomy.dimensions import table
from dprisk.taxonomy.keys import LEVELS
from dprisk.taxonomy.population import how_many, population
from dprisk.taxonomy.rules import ORDER
from dprisk.taxonomy.starter import Starter
from dprisk.threat import Attributes
from tests.typed import run

EXAMPLES = Path(str(resources.files("dprisk") / "examples"))
FILES = sorted(EXAMPLES.glob("*.toml"))
SCHEMA = jsonschema.Draft202012Validator(json_schema())

# Attaxonomy Table 1, word for word, but for D-hat, "or" for a stroke, and the role whose options are only examples.
TABLE_1 = """
crafter: Dataset generation: Dataset chosen or constructed; Dataset drawn from a distribution
crafter: Privacy unit: Group; Individual; Event or item
crafter: Target source: Target is chosen or constructed; Target is drawn
attacker: Access to the mechanism: Adaptive access; Whitebox; Blackbox; Query access (API); None
attacker: Population-level knowledge: Partial or full description of D; Random samples from D; \
Partial or full description of something near D; Data schema
attacker: Dataset-level knowledge: Chosen subsample of the dataset; Random subsample of the dataset; None
attacker: Attack goal: Membership inference; Attribute inference; Singling out; Reconstruction
evaluator: Baseline: The same attacker without access to the mechanism
evaluator: Success metric: Mean squared error to the target; True positive rate at a low false positive rate; \
Probability of an exact match
"""
SEVEN = (
    "Intermediate poison attack",
    "Label inference attack",
    "Predicate singling out",
    "Confidence-ranked reconstruction",
    "Gradient-based attack",
    "Reconstruction robustness",
    "Distributional reconstruction robustness",
)


def small(**changes: Any) -> dict[str, Any]:
    """A threat model that is whole, with changes at the top or, with one dot, inside a section or the attacker."""
    whole: dict[str, Any] = {
        "title": "Small",
        "release": {"mechanism": "grr", "epsilon": 1.0},
        "universe": {"prior": {"yes": 0.2, "no": 0.8}},
        "crafter": {"dataset_generation": "drawn", "privacy_unit": "individual", "target_source": "drawn"},
        "evaluator": {"baseline": "no-access", "metric": "exact-match"},
        "attacker": [
            {
                "name": "Somebody",
                "access": "blackbox",
                "population_knowledge": "description",
                "dataset_knowledge": "none",
                "goal": "reconstruction",
            }
        ],
    }
    for name, value in changes.items():
        section, _, key = name.partition("__")
        held = whole["attacker"][0] if section == "attacker" and key else whole.setdefault(section, {})
        if key and value is None:
            del held[key]
        elif key:
            held[key] = value
        elif value is None:
            del whole[section]
        else:
            whole[section] = value
    return whole


def read(folder: Path, **changes: Any) -> ThreatModel:
    path = folder / "small.json"
    path.write_text(json.dumps(small(**changes), indent=1))
    return read_threat_model(path)


def only(folder: Path, **changes: Any) -> Answered:
    """The one answer of the one attacker."""
    (found,) = answer(read(folder, **changes))[0].answers
    return found


def test_table_1_of_attaxonomy_comes_out() -> None:
    rows: dict[tuple[str, str], list[str]] = {}
    for row in table():
        rows.setdefault((row["role"], row["dimension"]), []).append(row["option"])
        assert row["question"].endswith("?")
    told = [f"{role}: {dimension}: {'; '.join(options)}" for (role, dimension), options in rows.items()]
    assert told == TABLE_1.strip().splitlines()


def test_the_seven_plotted_attacks_and_the_three_case_study_attackers_are_expressible() -> None:
    model = read_threat_model(EXAMPLES / "attaxonomy.toml")
    assert tuple(it.name for it in model.attackers) == SEVEN
    births = read_threat_model(EXAMPLES / "births.toml")
    assert [it.name.split()[0] for it in births.attackers] == ["Health", "Baby", "Curious"]
    for one in (model, births):
        for it in one.attackers:
            assert list(one.profile(it)) == [dimension.name for dimension in DIMENSIONS]
            assert questions(one, it)
    individual = births.attackers[2]
    assert (
        len(births.attacks(individual)) == 2 * 2 * 2 * 2
    )  # units, targets, goals and metrics: every path is an attack


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_valid_and_survives_the_round_trip(path: Path, tmp_path: Path) -> None:
    model = read_threat_model(path)
    given = read_document(path).given
    SCHEMA.validate(given)
    assert json.loads(json.dumps(model.to_dict())) == given | {"release": given["release"]}
    for suffix in (".toml", ".json"):
        written = write_threat_model(model, tmp_path / f"x{suffix}")
        assert read_threat_model(written) == model
        assert read_document(written).given == given


TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="<>"), min_size=1, max_size=20
)
NAMES = TEXTS.filter(lambda text: text.strip() != "")


@st.composite
def models(draw: st.DrawFn) -> ThreatModel:
    """Threat models that are free of contradictions."""

    def choice(*allowed: str) -> Choice:
        options = draw(st.lists(st.sampled_from(allowed), min_size=1, max_size=len(allowed) - 1, unique=True))
        return Choice(tuple(options), draw(st.just("") | TEXTS))

    shared = {it.name: choice(*(option.name for option in it.options)) for it in DIMENSIONS if it.role == "crafter"}
    shared["privacy_unit"] = choice("individual", "event")
    attackers = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        own = {
            "access": choice("whitebox", "blackbox", "query"),
            "population_knowledge": choice("description", "schema"),
            "dataset_knowledge": choice("chosen", "random"),
            "goal": choice("reconstruction", "singling-out"),
        }
        attackers.append(
            Attacker(
                name,
                own,
                draw(st.just("") | TEXTS),
                draw(st.none() | st.just("none") | st.just(("a", "b"))),
                draw(st.just(()) | st.just(("c", "d"))),
                tolerance=draw(st.none() | st.floats(0.001, 1.0)),
                impact=draw(st.none() | st.sampled_from(LEVELS)),
            )
        )
    return ThreatModel(
        draw(NAMES),
        {"guarantee": "pure", "epsilon": draw(st.floats(0, 10))},
        tuple(attackers),
        draw(st.just("") | TEXTS),
        Universe(prior=draw(st.just("uniform") | st.just({"x": 0.25, "y z": 0.75})), text=draw(st.just("") | TEXTS)),
        shared,
        {"baseline": Choice(("no-access",)), "metric": Choice(("exact-match",))},
        draw(st.none() | st.integers(1, 5)),
        draw(st.none() | st.integers(1, 10**9)),
    )


@settings(max_examples=30, deadline=None)
@given(model=models(), suffix=st.sampled_from([".toml", ".json"]))
def test_any_model_reads_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, model: ThreatModel, suffix: str
) -> None:
    path = write_threat_model(model, tmp_path_factory.mktemp("model") / f"x{suffix}")
    assert read_threat_model(path) == model
    SCHEMA.validate(read_document(path).given)


def test_the_release_of_a_threat_model_is_read_as_a_release_file() -> None:
    mechanism = read_release(EXAMPLES / "hours.toml").mechanism
    assert mechanism == make_plan(read_threat_model(EXAMPLES / "hours.toml")).setting.subject


def test_numbers_are_those_of_assess_and_calibrate() -> None:
    prior = Prior.from_csv(EXAMPLES / "clinic.csv")
    insurer, partner, journalist = answer(read_threat_model(EXAMPLES / "clinic.toml"))
    mechanism, threat = GRR(10, 2.0), Threat(prior)
    (found,) = insurer.answers
    expected = assess(mechanism, threat)
    assert found.exact
    assert found.advantage == expected.advantage
    assert isinstance(found.kept, Kept)
    assert found.kept.value == calibrate(mechanism, threat, advantage=0.05).value
    (found,) = partner.answers
    assert found.advantage == expected.of("HIV").advantage
    assert isinstance(found.kept, Kept)
    assert assess(GRR(10, found.kept.value or 0.0), threat).of("HIV").advantage == pytest.approx(0.05)
    risk, rate = journalist.answers
    assert risk.advantage == assess(mechanism, Threat.membership(prior)).advantage
    assert not risk.exact  # the journalist knows the population only nearly
    assert rate.rate == 1 - float(mechanism.guarantee().tradeoff(0.01))


def test_the_curve_passes_through_what_is_there_and_what_is_kept() -> None:
    for one in answer(read_threat_model(EXAMPLES / "clinic.toml")):
        for it in one.answers:
            if it.question.kind in ("risk", "record"):
                points = dict(it.curve)
                assert points[2.0] == pytest.approx(it.advantage, abs=1e-12)
                assert isinstance(it.kept, Kept)
                assert points[it.kept.value or 0.0] == pytest.approx(it.kept.tolerance, rel=1e-6)
                assert list(points.values()) == sorted(points.values())


@pytest.mark.slow
def test_a_unit_of_several_records_has_the_guarantee_of_a_group(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"crafter__privacy_unit": "group", "crafter__records_per_unit": 3}
    found = only(tmp_path, **changes, attacker__tolerance=0.05)
    threat = Threat(Prior({"yes": 0.2, "no": 0.8}))
    assert found.question.rules[3] == "group-privacy"
    assert found.advantage == assess(GRR(2, 1.0).guarantee().for_groups(3), threat).advantage
    assert not found.exact
    assert isinstance(found.kept, Kept)
    assert found.kept.value is not None
    assert assess(GRR(2, found.kept.value).guarantee().for_groups(3), threat).advantage == pytest.approx(0.05)
    pure = only(tmp_path, **changes, attacker__tolerance=0.05, release={"guarantee": "pure", "epsilon": 1.0})
    assert pure.advantage == assess(PureDP(3.0), threat).advantage
    assert isinstance(pure.kept, Kept)
    assert pure.kept.value == pytest.approx(calibrate(PureDP(1.0), threat, advantage=0.05).value / 3)


def test_the_most_exposed_is_the_most_exposed_whatever_the_noise(tmp_path: Path) -> None:
    """Of noise on numbers, and of a guarantee to who knows a column: there the rarest of a group, not of all."""
    changes: dict[str, Any] = {"attacker__target_source": "chosen", "attacker__tolerance": 0.1}
    prior = {"0": 0.4, "1": 0.3, "5": 0.3}
    found = only(tmp_path, **changes, universe={"prior": prior}, release={"mechanism": "laplace", "epsilon": 2.0})
    mechanism = make_plan(read_threat_model(tmp_path / "small.json")).setting.subject
    threat = Threat(Prior(prior))
    assert found.advantage == pytest.approx(float(np.nanmax(assess(mechanism, threat).exposures)), abs=1e-9)
    assert isinstance(found.kept, Kept)
    kept = mechanism.with_parameter(found.kept.value)
    assert float(np.nanmax(assess(kept, threat).exposures)) == pytest.approx(0.1, abs=1e-6)
    (tmp_path / "t.csv").write_text("sex,ill\n" + "f,a\n" + "f,b\n" + "m,a\n" * 2 + "m,b\n" * 90)
    changes |= {"universe": {"table": "t.csv"}, "release": {"guarantee": "pure", "epsilon": 1.0}}
    changes |= {"attacker__knows": ["sex"], "attacker__wants": ["ill"], "attacker__goal": "attribute"}
    found = only(tmp_path, **changes, attacker__dataset_knowledge="chosen")
    assert found.exposed[0].record == ("m", "a")
    every = [found.risk.of(record).advantage for record in found.threat.prior.labels]  # type: ignore[union-attr]
    assert found.advantage == max(every)


def test_composed_releases_are_assessed_together(tmp_path: Path) -> None:
    parts = [{"guarantee": "pure", "epsilon": 0.5, "times": 2}, {"mechanism": "grr", "epsilon": 1.0}]
    found = only(tmp_path, release={"parts": parts}, attacker__tolerance=0.05)
    threat = Threat(Prior({"yes": 0.2, "no": 0.8}))
    together = PureDP(0.5).compose(2).compose(GRR(2, 1.0).guarantee())
    assert found.advantage == assess(together, threat).advantage
    assert found.advantage <= assess(PureDP(2.0), threat).advantage
    assert isinstance(found.kept, str)


def test_a_column_that_people_randomise_is_a_survey(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,ill\n" + "f,yes\n" * 3 + "f,no\n" * 5 + "m,yes\n" + "m,no\n" * 11)
    changes: dict[str, Any] = {
        "universe": {"table": "people.csv"},
        "release": {"mechanism": "grr", "epsilon": 1.0, "column": "ill"},
        "attacker__knows": ["sex"],
        "attacker__wants": ["ill"],
        "attacker__goal": "attribute",
        "attacker__dataset_knowledge": "chosen",
    }
    found = only(tmp_path, **changes)
    survey = Survey.from_csv(tmp_path / "people.csv", "ill", ["sex"])
    expected = assess(survey.randomised(GRR(2, 1.0)), survey.threat())
    assert found.exact
    assert found.advantage == pytest.approx(expected.advantage, abs=1e-12)


def test_columns_that_nobody_asks_for_make_no_difference_to_a_guarantee(tmp_path: Path) -> None:
    """What is computed over the columns that are known and wanted is what `assess` says over whole rows."""
    rng = np.random.default_rng(3)
    rows = {name: rng.integers(0, 2, 40).tolist() for name in "abc"}
    lines = ["a,b,c", *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    changes: dict[str, Any] = {
        "universe": {"table": "people.csv"},
        "release": {"guarantee": "pure", "epsilon": 1.5},
        "attacker__knows": ["a"],
        "attacker__wants": ["c"],
        "attacker__goal": "attribute",
        "attacker__dataset_knowledge": "chosen",
    }
    found = only(tmp_path, **changes)
    whole = Threat.attributes(rows, known=["a"], secret=["c"])
    assert found.advantage == pytest.approx(assess(PureDP(1.5), whole).advantage, abs=1e-12)


def test_marginals_are_a_product(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("column,value,count\na,x,1\na,y,3\nb,u,2\nb,v,2\n")
    model = read(tmp_path, universe={"marginals": "m.csv"}, release={"guarantee": "pure", "epsilon": 1.0})
    records = make_plan(model).setting.records
    assert records.prior.to_dict() == pytest.approx(
        {("x", "u"): 1 / 8, ("x", "v"): 1 / 8, ("y", "u"): 3 / 8, ("y", "v"): 3 / 8}
    )
    knows = Knowledge.columns(records.table or {}, ["a"])
    assert Threat(records.prior, knows, Attributes(records.table or {}, ("b",))).baseline == pytest.approx(0.5)


def test_a_table_that_is_absent_gives_way_to_its_marginals(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("column,value,count\na,x,1\na,y,3\n")
    changes: dict[str, Any] = {
        "universe": {"table": "t.csv", "marginals": "m.csv"},
        "release": {"guarantee": "pure", "epsilon": 1.0},
    }
    assert "marginals" in make_plan(read(tmp_path, **changes)).setting.records.source
    (tmp_path / "t.csv").write_text("a\nx\ny\nz\n")
    assert "3 people in t.csv" in make_plan(read(tmp_path, **changes)).setting.records.source


def test_bands_move_numbers_down(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n11,f\n14,f\n15,m\n19,m\n20,f\n")
    changes: dict[str, Any] = {
        "universe": {"table": "t.csv", "bands": {"age": 5}},
        "release": {"guarantee": "pure", "epsilon": 1.0},
    }
    assert make_plan(read(tmp_path, **changes)).setting.records.prior.labels == ((10, "f"), (15, "m"), (20, "f"))


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=lambda it: it.name)
def test_every_option_has_an_answer_and_names_its_rules(dimension: Any, tmp_path: Path) -> None:
    """Whatever is chosen, the rules say a number or that nothing covers it, with a reason."""
    for option in dimension.options:
        changes: dict[str, Any] = {f"attacker__{dimension.name}": {"option": option.name, "text": "why"}}
        cases: dict[tuple[str, str], dict[str, Any]] = {
            ("goal", "membership"): {"attacker__dataset_knowledge": "chosen", "attacker__knows": "all"},
            ("goal", "attribute"): {
                "attacker__wants": ["b"],
                "universe": {"marginals": "m.csv"},
                "release": {"guarantee": "pure", "epsilon": 1.0},
            },
            ("privacy_unit", "group"): {"crafter__records_per_unit": 2},
            ("metric", "tpr-at-fpr"): {
                "attacker__goal": "membership",
                "attacker__dataset_knowledge": "chosen",
                "attacker__fpr": 0.1,
            },
            ("metric", "within-distance"): {"attacker__within": 1.0, "universe": {"prior": "uniform", "size": 5}},
        }
        more = cases.get((dimension.name, option.name), {})
        (tmp_path / "m.csv").write_text("column,value,count\na,x,1\na,y,3\nb,u,2\nb,v,2\n")
        for it in answer(read(tmp_path, **{**changes, **more}))[0].answers:
            assert all(name in RULES for name in it.question.rules)
            numbers = [it.advantage, it.rate, it.population, it.many]
            assert (it.question.kind == "not covered") == (numbers == [None] * 4)
            assert bool(it.reason) == (it.question.kind == "not covered")


def test_what_is_not_covered_is_an_answer_with_its_reason(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"attacker__metric": "mean-squared-error"}, "squared-error"),
        ({"attacker__goal": "singling-out"}, "singling-out"),
        ({"attacker__metric": {"option": "other", "text": "F1"}}, "other-metric"),
        ({"attacker__baseline": {"option": "other", "text": "a robot"}}, "other-baseline"),
        ({"crafter__people": 9, "attacker__dataset_knowledge": "random"}, "informed-population"),
    ]
    for changes, rule in cases:
        found = answer(read(tmp_path, **changes))[0].not_covered
        assert [it.question.rules[-1] for it in found] == [rule]
        assert len(found[0].reason) > 30


def test_an_attacker_without_access_gains_nothing(tmp_path: Path) -> None:
    assert only(tmp_path, attacker__access="none").advantage == 0.0


def test_weaker_attackers_have_the_same_numbers_as_upper_bounds(tmp_path: Path) -> None:
    strong = only(tmp_path)
    for dimension, option in (("access", "query"), ("population_knowledge", "schema")):
        changes: dict[str, Any] = {f"attacker__{dimension}": option}
        weak = only(tmp_path, **changes)
        assert strong.exact
        assert not weak.exact
        assert weak.advantage == strong.advantage


def test_questions_come_in_the_order_in_which_people_ask() -> None:
    for path in FILES:
        model = read_threat_model(path)
        for it in model.attackers:
            kinds = [ORDER.index(question.kind) for question in questions(model, it)]
            assert kinds == sorted(kinds)


def test_the_population_bound_says_when_it_says_something() -> None:
    threat = Threat(Prior.uniform(100_000))
    found = population(PureDP(1.0), threat, 100)
    expected = assess(PureDP(1.0), threat).match_among(100)
    assert (found.some, found.one) == pytest.approx((expected[0].number, expected[1].number), rel=1e-9)
    assert not found.is_vacuous
    assert found.says_from is not None
    assert population(PureDP(found.says_from), threat, 100).some <= 0.99
    assert population(PureDP(found.says_from * 1.01), threat, 100).some > 0.99
    assert found.baseline == pytest.approx(1 - (1 - 1e-5) ** 100)
    few = Threat(Prior.uniform(3))
    vacuous = population(PureDP(1.0), few, 1000)
    assert vacuous.is_vacuous
    assert vacuous.says_from is None
    assert population(PureDP(0.0), few, vacuous.people_at_best).some < 0.99
    assert population(PureDP(0.0), few, vacuous.people_at_best + 1).some >= 0.99
    assert population(PureDP(1.0), few, 3).people_at_best == 3
    assert population(ApproxDP(1.0, 1e-9), threat, 100).some == pytest.approx(found.some, rel=1e-3)


@pytest.mark.slow
def test_how_many_of_all_people_are_found_out_is_that_of_the_population_room(tmp_path: Path) -> None:
    """With 95 % confidence: for pure and approximate DP, next to the one guess about anybody."""
    for guarantee, subject in (({}, PureDP(1.0)), ({"delta": 1e-6}, ApproxDP(1.0, 1e-6))):
        release = {"guarantee": "approx" if guarantee else "pure", "epsilon": 1.0, **guarantee}
        model = read(tmp_path, release=release, universe={"prior": "uniform", "size": 10}, crafter__people=100)
        kinds = {it.question.kind: it for it in answer(model)[0].answers}
        many = kinds["many"].many
        assert many is not None
        expected = at_most(subject, Targets.uniform(100, values=10))
        assert (many.at_most, many.without_release) == (expected.at_most, expected.without_release) == (30, 15)
        assert kinds["population"].population is not None
        assert "many-targets" in kinds["many"].question.rules
    for changes in ({"crafter__dataset_generation": "chosen"}, {"crafter__target_source": "chosen"}):
        model = read(tmp_path, crafter__people=100, **changes)
        assert "many" not in {it.kind for it in questions(model, model.attackers[0])}


@given(epsilon=st.floats(0.0, 3.0), seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_randomised_response_breaks_the_count_for_who_knows_something_of_each(epsilon: float, seed: int) -> None:
    """People randomise their whole record; who knows a column of each guesses the rest as well as can be."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(6, 0.7))
    groups = np.array([0, 0, 1, 1, 1, 2])
    threat, people = Threat(Prior(weights), Knowledge(groups, tuple("abc"))), 12
    found = how_many(PureDP(epsilon), threat, people)
    chance = assess(GRR(6, epsilon), threat).success  # of each, independently
    law = [math.comb(people, k) * chance**k * (1 - chance) ** (people - k) for k in range(people + 1)]
    for wanted in range(people + 1):
        assert sum(law[wanted:]) <= found.chance_of(wanted) + 1e-12
    assert sum(law[found.at_most + 1 :]) <= 0.05


def test_a_count_that_is_not_proven_is_not_offered(tmp_path: Path) -> None:
    threat = Threat(Prior.uniform(4), Knowledge(np.array([0, 0, 1, 1]), ("a", "b")))
    with pytest.raises(DpriskError, match="pure DP only"):
        how_many(ApproxDP(1.0, 1e-6), threat, 100)
    release = {"guarantee": "pure", "epsilon": 1.0}
    model = read(tmp_path, release=release, crafter__people=10**10)
    reasons = [it.reason for it in answer(model)[0].not_covered]
    assert reasons == ["Guesses are counted for up to 200,000 people, not for 10,000,000,000"]


def test_what_the_starter_offers_goes_together(tmp_path: Path) -> None:
    """It offered `knows` under a dataset_knowledge that excludes it, without a word."""
    (tmp_path / "people.csv").write_text("age,sex,illness\n30,f,flu\n40,m,HIV\n30,m,flu\n")
    text = Starter().to_toml().replace('prior = "uniform"\nsize = 10', 'table = "people.csv"')
    text = (
        text.replace("# knows = ", "knows = ")
        .replace("# wants = ", "wants = ")
        .replace('"reconstruction"', '"attribute"')
    )
    (tmp_path / "model.toml").write_text(text)
    with pytest.raises(InputFileError, match="`dataset_knowledge` is none; say chosen or random there"):
        read_threat_model(tmp_path / "model.toml")
    advice = 'dataset_knowledge = "random"'
    assert advice in text
    (tmp_path / "model.toml").write_text(text.replace('dataset_knowledge = "none"', advice))
    assert read_threat_model(tmp_path / "model.toml").attackers[0].knows == ("age", "sex")


def test_the_starter_file_is_whole_and_its_release_is_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(Starter(title='Our "own"', mechanism="oue", epsilon=0.5, size=7).to_toml())
    (one,) = answer(read_threat_model(path))
    assert one.setting.subject == OUE(7, 0.5)
    assert one.answers[0].advantage == assess(OUE(7, 0.5), Threat(Prior.uniform(7))).advantage


BROKEN: dict[str, tuple[Any, str]] = {
    "wrong type": (small(attacker__tolerance="much"), r"line \d+: `attacker 1, tolerance` is a number above 0"),
    "percent": (small(attacker__tolerance=5), r"`attacker 1, tolerance` .* 5 points are 0\.05"),
    "a release file": (
        {"data": "x.csv", "query": {"kind": "count"}, "universe": "data", "noise": {}},
        r"json is a release file, .* goes below a line \[release\]",
    ),
    "unknown key": (small(attacker__colour="red"), r"line \d+ has an unknown name `colour` in `attacker 1`"),
    "unknown option": (small(attacker__goal="fame"), r"line \d+: `attacker 1, goal` is one of membership, attribute"),
    "missing part": (small(attacker__goal=None), r"line \d+: `attacker 1` \(Somebody\) lacks `goal`; it is one of"),
    "missing universe": (small(universe=None), r"small.json lacks `universe`"),
    "missing prior": (small(universe={"size": 3}), r"line \d+: `universe` needs a prior, a table"),
    "prior not summing": (small(universe={"prior": {"a": 0.5, "b": 0.3}}), r"`universe, prior` sums to 0\.8, not 1"),
    "contradiction": (
        small(attacker__goal="membership", attacker__knows="none", attacker__dataset_knowledge="chosen"),
        r"line \d+: `attacker 1, knows` \(Somebody\) must be all with the goal membership",
    ),
    "knowledge none": (
        small(attacker__goal="membership"),
        r"line \d+: `attacker 1, dataset_knowledge` \(Somebody\) is none, but the goal is membership",
    ),
    "absent file": (small(universe={"prior": "nowhere.csv"}), r"line \d+: `universe, prior` names a file that is not"),
    "file elsewhere": (small(universe={"prior": "/etc/passwd.csv"}), r"`universe, prior` must lie in the folder"),
    "HTML in a name": (small(attacker__name="<b>Bob</b>"), r"line \d+: `attacker 1, name` is a name in plain text"),
    "HTML in the title": (small(title="<script>"), r"line \d+: `title` is a name in plain text, without '<'"),
    "long name": (small(title="x" * 121), r"`title` has 121 letters, at most 120"),
    "no such mechanism": (small(release={"mechanism": "magic"}), r"line \d+: `release, mechanism` is one of grr"),
    "lacking epsilon": (small(release={"mechanism": "grr"}), r"line \d+: `release` lacks `epsilon`"),
    "two releases": (small(release={"mechanism": "grr", "guarantee": "pure"}), r"needs exactly one of mechanism"),
    "bad epsilon": (small(release={"mechanism": "grr", "epsilon": -1}), r"line \d+: `release`: epsilon must be"),
    "no columns": (
        small(attacker__knows=["age"], attacker__dataset_knowledge="chosen"),
        r"`attacker 1, knows` \(Somebody\) names 'age', which is no column of the records",
    ),
    "no such target": (
        small(attacker__target="perhaps", attacker__target_source="chosen"),
        r"line \d+: `attacker 1, target` \(Somebody\) is not among the records: There is no record 'perhaps'",
    ),
    "no attackers": (small(attacker=[]), r"line \d+: `attacker` is a list"),
    "many attacks": (
        small(
            crafter__dataset_generation=["chosen", "drawn"],
            crafter__privacy_unit=["individual", "event"],
            crafter__target_source=["chosen", "drawn"],
            attacker__access=["adaptive", "whitebox", "blackbox", "query"],
            attacker__population_knowledge=["description", "samples", "schema"],
        ),
        r"stands for 96 attacks, at most 64",
    ),
    "too many records": (
        small(crafter__records_per_unit=10**6),
        r"records_per_unit` is a whole number from 1 to 10,000",
    ),
    "twice": (
        small(attacker=[small()["attacker"][0], small()["attacker"][0] | {"name": " ｓomebody"}]),
        r"`attacker 2, name` is ' ｓomebody' again; each attacker needs a name of its own",
    ),
    "too often": (small(release__times=10**9), r"`release, times` is a whole number from 1 to 100,000, got 1000000000"),
    "no number": (
        small(crafter__people=True),
        r"`crafter, people` is a whole number from 1 to 10,000,000,000, got True",
    ),
}
TEXTS_BROKEN: dict[str, tuple[bytes, str]] = {
    "broken TOML": (b'title = "x"\nrelease = = 3', r"cannot be read as TOML: .*line 2"),
    "deep nesting": (b"a = " + b"[" * 1000, r"line 1: brackets are nested more than 20 deep"),
    "not UTF-8": (b'title = "x"\nabout = "caf\xe9"', r"line 2 holds the byte 0xe9, which is not UTF-8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_gets_one_sentence_with_its_place(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document, message = BROKEN[case]
    path = tmp_path / "small.json"
    path.write_text(json.dumps(document, indent=1))
    for command in (("check", str(path)), ("report", str(path), "--out", str(tmp_path / "r.html"))):
        code, out, err = run(capsys, monkeypatch, *command)
        assert (code, out) == (2, "")
        assert re.search(message, err), err
        assert err.startswith(f"Error: {path}")
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()


def test_the_line_that_is_told_is_the_line_of_the_key(tmp_path: Path) -> None:
    document = small(attacker__colour="red")
    path = tmp_path / "small.json"
    path.write_text(json.dumps(document, indent=1))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), start=1) if "colour" in text)
    with pytest.raises(DpriskError, match=f"line {line} has an unknown name"):
        read_threat_model(path)


@pytest.mark.parametrize("case", TEXTS_BROKEN)
def test_text_that_is_no_document_gets_one_sentence(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, message = TEXTS_BROKEN[case]
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    code, out, err = run(capsys, monkeypatch, "check", str(path))
    assert (code, out) == (2, "")
    assert re.search(message, err), err
    assert len(err.splitlines()) == 1


def test_a_file_of_100_megabytes_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.toml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    code, _, err = run(capsys, monkeypatch, "report", str(path), "--out", "x.html")
    assert code == 2
    assert "100,000,000 bytes, at most" in err


@pytest.mark.parametrize("case", ["wrong type", "unknown key", "unknown option", "HTML in a name", "no attackers"])
def test_the_schema_refuses_what_the_reader_refuses_for_its_form(case: str) -> None:
    assert not SCHEMA.is_valid(BROKEN[case][0])
    assert SCHEMA.is_valid(small())


def test_init_writes_a_file_that_check_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "mine.toml")
    assert run(capsys, monkeypatch, "init", path, "--yes")[0] == 0
    code, out, _ = run(capsys, monkeypatch, "check", path)
    assert code == 0
    assert "The file is whole: 1 attacker, about whom 1 question is answered." in out
    code, _, err = run(capsys, monkeypatch, "init", path, "--yes")
    assert code == 2
    assert "is there already" in err


def test_init_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["Telemetry", "oue", 2.0, 50, "Analyst", 0.1, "high"])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    path = tmp_path / "mine.toml"
    assert run(capsys, monkeypatch, "init", str(path))[0] == 0
    model = read_threat_model(path)
    assert model.title == "Telemetry"
    assert model.release == {"mechanism": "oue", "epsilon": 2.0}
    assert (model.attackers[0].tolerance, model.attackers[0].impact) == (0.1, "high")


def test_check_prints_the_schema(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run(capsys, monkeypatch, "check", "--schema")
    assert code == 0
    assert json.loads(out) == json_schema()
