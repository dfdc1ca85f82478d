"""The report: its numbers are those of the verbs, its text is nobody's code, and all its forms say the same."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dprisk import GRR, OLH, ApproxDP, Prior, PureDP, Threat, assess, audit, calibrate
from dprisk.errors import DpriskError
from dprisk.population import Targets, at_most
from dprisk.report import Report, make_report, read_audit
from dprisk.report.blocks import Card, Figure, Heading, Paragraph, Table
from dprisk.report.nist import likelihood, risk_level
from dprisk.report.svg import wrapped
from dprisk.rounding import plain, significant_down, significant_up
from dprisk.taxonomy import Kept, read_threat_model
from dprisk.taxonomy.keys import LEVELS
from tests.test_taxonomy import EXAMPLES, small
from tests.typed import run

CHEAP = ("clinic", "telemetry", "attaxonomy")


class Tables(HTMLParser):
    """The tables of a page by caption: a dictionary from heading to cell for each row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self._cell: str | None = None
        self._caption, self._head, self._row = "", list[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag in ("td", "th", "caption"):
            self._cell = ""
        if tag == "tr":
            self._row = []
        if tag == "table":
            self._head = []

    def handle_data(self, data: str) -> None:
        """Called for text."""
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag: str) -> None:
        """Called for each end."""
        if tag == "caption":
            self._caption, self._cell = self._cell or "", None
            self.tables.setdefault(self._caption, [])
        if tag in ("td", "th"):
            self._row.append(self._cell or "")
            self._cell = None
        if tag == "tr" and not self._head:
            self._head = self._row
        elif tag == "tr":
            self.tables[self._caption].append(dict(zip(self._head, self._row, strict=True)))


@cache
def report(name: str) -> Report:
    return make_report(read_threat_model(EXAMPLES / f"{name}.toml"))


@pytest.fixture(scope="module")
def clinic() -> Report:
    return report("clinic")


def test_the_numbers_on_the_page_are_those_of_assess_and_calibrate(clinic: Report) -> None:
    page = Tables(clinic.to_html())
    prior = Prior.from_csv(EXAMPLES / "clinic.csv")
    threat, mechanism = Threat(prior), GRR(10, 2.0)
    risk = assess(mechanism, threat)
    rows = {row["attacker and target"]: row for row in page.tables["All attackers side by side"]}
    drawn = rows["Health insurer: Anybody, drawn at random"]
    assert drawn["baseline"] == plain(risk.baseline)
    assert drawn["success"] == plain(risk.success)
    assert drawn["advantage"] == plain(risk.advantage)
    found = calibrate(mechanism, threat, advantage=0.05)
    assert drawn["keeps the tolerance"] == f"epsilon {significant_down(found.value, 3)} or less"
    one = risk.of("HIV")
    looked_for = rows["Former partner: One chosen person: HIV"]
    assert looked_for["advantage"] == plain(one.advantage)
    assert looked_for["success"] == plain(one.largest_posterior or 0.0)
    exposed = {
        row["record"]: row for row in page.tables["What an attacker gains who looks for this record and no other"]
    }
    for name, gain in risk.most_at_risk(3):
        assert exposed[name]["advantage"] == plain(gain)
    bounds = page.tables["Exact values and bounds side by side"]
    assert bounds[0]["at most"] == plain(risk.advantage)
    assert bounds[1]["at most"] == f"<= {significant_up(risk.bounds.advantage, 4)}"
    assert risk.sentence() in clinic.to_html()
    cost = page.tables["What that costs in accuracy"][0]
    assert float(cost["now"]) == pytest.approx(mechanism.error()["variance of a frequency, times reports"], rel=1e-3)
    assert float(cost["then"]) == pytest.approx(
        found.subject.error()["variance of a frequency, times reports"], rel=1e-3
    )
    curve = page.tables["The same as a table: the advantage, at most"]
    for row in curve[:5]:
        value = assess(GRR(10, float(row["epsilon"])), threat).advantage
        assert float(row["Anybody, drawn at random"]) == pytest.approx(value, rel=2e-3)


@pytest.mark.slow
def test_the_births_answer_what_epsilon_means_for_each_attacker() -> None:
    """On the bundled marginals: the universal bound, the one for this prior, and the population bound side by side."""
    found = report("births")
    page = Tables(found.to_html())
    curious = found.faced[2]
    threat = Threat(curious.setting.records.prior)
    worst = assess(PureDP(9.98), threat)
    rows = [row for row in page.tables["Exact values and bounds side by side"] if row["target"].endswith("one event")]
    shown = [(row["target"].split(";")[0], row["how"].split(",")[0], row["at most"]) for row in rows]
    assert shown[-3:] == [
        ("Anybody, drawn at random", "By the guarantee", f"<= {significant_up(worst.advantage, 4)}"),
        ("Anybody, drawn at random", "Universal bound", "<= 0.9865"),
        ("One guess for all of 166,000 people", "Population bound", "<= 1"),
    ]
    needed = calibrate(PureDP(1.0), threat, advantage=0.05).value
    html = found.to_html()
    assert f"epsilon {significant_down(needed, 3)} or less keeps the tolerance" in html
    assert "the promise says nothing: its bound is 1. At no epsilon would it" in html
    retailer = found.faced[1].answers[0]
    assert isinstance(retailer.kept, Kept)
    assert significant_down(retailer.kept.value or 0.0, 3) == "0.206"
    assert "Baby and toddler retail chain: Anybody, drawn at random; one event" in html
    assert "at most 987 of 1000" in html


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_every_form_has_the_same_content(name: str) -> None:
    found = report(name)
    page, text, data = found.to_html(), found.to_markdown(), json.loads(found.to_json())
    plain_text = re.sub(r"\\(.)", r"\1", text)
    tables = Tables(page).tables
    count = 0
    for block in found.blocks:
        table = block.table if isinstance(block, Figure) else block
        if isinstance(table, Table):
            for row in table.rows:
                count += 1
                assert dict(zip(table.head, row, strict=True)) in tables[table.caption]
                assert f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" in plain_text
    assert count > 20
    assert len(data["content"]) == len(found.blocks)
    assert data["threat_model"] == found.model.to_dict()
    assert [it["name"] for it in data["attackers"]] == [it.name for it in found.model.attackers]
    assert len(page) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_the_page_is_accessible_and_needs_nothing_else(name: str) -> None:
    page = report(name).to_html()
    found = Tables(page)
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(found.tags)
    assert not [it for it in found.attributes if it[1] in ("src", "style") or it[1].startswith("on")]
    assert all(value.startswith("#") for tag, key, value in found.attributes if key == "href")
    targets = {value for _, key, value in found.attributes if key == "id"}
    assert {value[1:] for _, key, value in found.attributes if key == "href"} <= targets
    headings = [int(tag[1]) for tag in found.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert found.tags.count("svg") >= 4
    labels = [value for tag, key, value in found.attributes if tag == "svg" and key == "aria-label"]
    assert len(labels) == found.tags.count("svg")
    assert found.tags.count("caption") == found.tags.count("table")
    assert "default-src 'none'" in page


def test_colours_have_contrast_in_the_light_and_in_the_dark() -> None:
    """WCAG: text at least 4.5 to 1 on what it stands on, lines at least 3 to 1."""
    sheet = (resources.files("dprisk.report") / "style.css").read_text()
    for theme in re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]:
        colour = dict(re.findall(r"--(\w+): #([0-9a-f]{6});", theme))
        for text in ("ink", "soft", "link", "good", "bad"):
            for ground in ("paper", "card"):
                assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
        for level in range(5):
            assert contrast(colour["ink"], colour[f"l{level}"]) >= 4.5
        for line in (*(f"c{number}" for number in range(8)), "bad", "ink"):
            assert contrast(colour[line], colour["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> | ** ` [x](javascript:alert(3)) \x1b[31m \u202e'


def test_text_of_users_stays_text(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text('label,count\n"<img src=x onerror=alert(1)>",3\nb,7\n')
    document = small(
        about=HOSTILE,
        universe={"prior": "prior.csv", "text": HOSTILE},
        attacker__about=HOSTILE,
        attacker__access={"option": "blackbox", "text": HOSTILE},
    )
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    found = make_report(read_threat_model(path))
    page = found.to_html()
    assert "alert(1)" in page
    parsed = Tables(page)
    assert not {"script", "img"} & set(parsed.tags)
    assert not [it for it in parsed.attributes if it[1].startswith("on") or "javascript" in it[2]]
    assert "\\x1b[31m" in page
    assert "\u202e" not in page + found.to_markdown()
    text = found.to_markdown().split("```")[0]
    assert not re.search(r"(?<!\\)<", text)
    assert not re.search(r"(?<!\\)\]\(", text)


def made(folder: Path, **changes: Any) -> Report:
    path = folder / "x.json"
    path.write_text(json.dumps(small(**changes)))
    return make_report(read_threat_model(path))


def in_short(found: Report) -> list[str]:
    """What the summary says before its cards."""
    told = [it.text for it in found.blocks if isinstance(it, Heading | Paragraph)]
    return told[told.index("In short") + 1 : told.index("Attackers side by side")]


def test_nobody_is_called_found_out_whom_no_report_gives_away(tmp_path: Path) -> None:
    """A rare record: nearly all who have it get a yes, and nearly nobody who gets one has it."""
    prior = {"rare": 1e-6, "common": 1 - 1e-6}
    changes = {"universe": {"prior": prior}, "attacker__target_source": "chosen", "attacker__tolerance": 0.05}
    found = made(tmp_path, release={"guarantee": "pure", "epsilon": 7.0}, **changes)
    (card,) = (it for it in found.blocks if isinstance(it, Card))
    assert "found out" not in card.unit
    assert "more people with the record it looks for get a yes" in card.unit
    assert "though no report makes it more than 0.11 % sure" in card.sentences[0]
    assert "says yes to at most 999 more of 1000 people with the record it looks for" in found.sentence()
    nearly = made(tmp_path, release={"guarantee": "pure", "epsilon": 20.8}, **changes)
    assert "than 99.91 % sure" in nearly.to_markdown()
    assert "100 % sure" not in nearly.to_markdown()


def test_comfort_is_told_only_of_who_was_compared(tmp_path: Path) -> None:
    safe = small(release={"mechanism": "grr", "epsilon": 0.01}, attacker__tolerance=0.05)
    path = tmp_path / "x.json"
    other = safe["attacker"][0] | {"name": "Another", "goal": "singling-out"}
    third = safe["attacker"][0] | {"name": "Third", "metric": ["exact-match", "mean-squared-error"]}
    cases: list[tuple[list[dict[str, Any]], list[str]]] = [
        (safe["attacker"], ["The attacker stays within what is tolerated."]),
        ([third], ["The attacker stays within what is tolerated, in what is covered."]),
        (
            [*safe["attacker"], other],
            [
                "Somebody stays within what is tolerated.",
                "Nothing here says whether the tolerance is kept: Another.",
            ],
        ),
    ]
    for attackers, told in cases:
        path.write_text(json.dumps(safe | {"attacker": attackers}))
        assert in_short(make_report(read_threat_model(path)))[: len(told)] == told
    path.write_text(
        json.dumps(safe | {"attacker": [*safe["attacker"], other], "release": {"mechanism": "grr", "epsilon": 9}})
    )
    assert "To keep the tolerances that can be compared: epsilon" in in_short(make_report(read_threat_model(path)))[0]


def test_who_sees_what_is_computed_on_the_way_is_told_of_beside_the_numbers(tmp_path: Path) -> None:
    told = "only if the promise covers that too"
    assert told in made(tmp_path, attacker__access="whitebox").to_html()
    assert told not in made(tmp_path).to_html()


def test_a_printed_epsilon_keeps_the_tolerance_even_where_the_risk_jumps(tmp_path: Path) -> None:
    """At epsilon 3.4897 hashing takes one value more than at 3.48, and risks less."""
    tolerance = 0.3756281407035176
    universe, release = {"prior": "uniform", "size": 10}, {"mechanism": "olh", "epsilon": 4.0}
    found = made(tmp_path, universe=universe, release=release, attacker__tolerance=tolerance)
    kept = found.faced[0].answers[0].kept
    assert isinstance(kept, Kept)
    threat = Threat(Prior.uniform(10))
    assert assess(OLH(10, float(kept.shown)), threat).advantage <= tolerance
    assert assess(OLH(10, float(significant_down(kept.found.value, 3))), threat).advantage > tolerance
    assert "or less" not in found.rows[0][-1]
    assert in_short(found)[0].endswith(f"To keep every tolerance: epsilon {kept.shown}.")
    both = small(universe=universe, release=release, attacker__tolerance=0.2)
    both["attacker"].append(both["attacker"][0] | {"name": "Another", "tolerance": tolerance})
    (tmp_path / "y.json").write_text(json.dumps(both))
    told = in_short(make_report(read_threat_model(tmp_path / "y.json")))[0]
    epsilon = float(told.split("epsilon ")[1].rstrip("."))
    assert assess(OLH(10, epsilon), threat).advantage <= 0.2


def test_a_release_without_noise_has_a_report(tmp_path: Path) -> None:
    page = Tables(made(tmp_path, release={"mechanism": "grr", "epsilon": 800.0}, attacker__tolerance=0.05).to_html())
    (row,) = page.tables["What that costs in accuracy"]
    assert (row["now"], row["times as much"]) == ("0", "")


def test_a_count_of_all_people_is_said_beside_the_one_guess(tmp_path: Path) -> None:
    changes = {"universe": {"prior": "uniform", "size": 1000}, "crafter__people": 100}
    found = made(tmp_path, release={"guarantee": "approx", "epsilon": 1.0, "delta": 1e-6}, **changes)
    most = at_most(ApproxDP(1.0, 1e-6), Targets.uniform(100, values=1000))
    told = f"no attacker reconstructs more than {most.at_most} of these 100 records (95 % confidence); without the"
    assert told in found.to_html()
    assert "One guess matches at least one of 100 people" in found.to_html()
    row = next(row for row in found.rows if row[1] == "How many of 100 people")
    assert row[2:5] == (f"<= {most.without_release}", f"<= {most.at_most}", "")
    answers = json.loads(found.to_json())["attackers"][0]["answers"]
    assert [it["many"]["at_most"] for it in answers if "many" in it] == [most.at_most]
    knows = made(tmp_path, attacker__dataset_knowledge="random", **changes)
    assert "(95 % confidence), those that it knew beforehand aside; without" in knows.to_html()
    weak = made(tmp_path, release={"guarantee": "pure", "epsilon": 30.0}, **changes)
    assert "does not rule out that somebody reconstructs all of these 100 records" in weak.to_html()


def test_a_record_of_a_table_is_told_by_its_columns_and_bands(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n11,f\n14,f\n15,m\n19,m\n20,f\n20,f\n")
    document = small(
        universe={"table": "t.csv", "bands": {"age": 5}},
        release={"guarantee": "pure", "epsilon": 1.0},
        attacker__target_source="chosen",
        attacker__target="10, f",
    )
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    (line,) = make_report(read_threat_model(path)).lines()
    assert "(one chosen person: age 10 to 14, sex f)" in line


def test_slips_in_a_table_are_among_the_limits(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("ill,sex\nFlu,f\nflu,m\n")
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small(universe={"table": "people.csv"})))
    page = make_report(read_threat_model(path)).to_markdown()
    assert "- `Flu` and `flu` of ill count as different values." in page.replace("\\", "")


def test_a_low_level_of_risk_is_no_leave_to_exceed_the_tolerance(tmp_path: Path) -> None:
    """NIST's levels are coarse: at 0.13 an attacker above its tolerance of 0.05 with high impact is called low."""
    path = tmp_path / "model.json"
    changes: dict[str, Any] = {"attacker__tolerance": 0.05, "attacker__impact": "high"}
    path.write_text(json.dumps(small(**changes)))
    page = make_report(read_threat_model(path))
    (row,) = Tables(page.to_html()).tables["Each attacker's level"]
    assert (row["likelihood"], row["risk"], row["tolerance"]) == ("low", "low", "may be exceeded")
    assert "A low level is no leave to exceed the tolerance" in page.to_html()
    assert "may be exceeded by: Somebody." in page.to_html()
    path.write_text(json.dumps(small(**changes | {"attacker__tolerance": 0.5})))
    calm = make_report(read_threat_model(path)).to_html()
    assert Tables(calm).tables["Each attacker's level"][0]["tolerance"] == "kept"
    assert "A low level" not in calm
    path.write_text(json.dumps(small(**changes | {"release__epsilon": 5.0})))
    assert "A low level" not in make_report(read_threat_model(path)).to_html()


@pytest.mark.parametrize("release", [{"mechanism": "grr", "epsilon": 9.0}, {"guarantee": "pure", "epsilon": 9.0}])
@pytest.mark.parametrize("rows", ["flu,f\n", "flu,f\nflu,m\nflu,m\n"])
def test_a_table_that_leaves_nothing_to_find_out_keeps_no_tolerance(
    release: dict[str, Any], rows: str, tmp_path: Path
) -> None:
    """The attacker is right about everybody beforehand: an advantage of 0 is no good news of the noise."""
    (tmp_path / "people.csv").write_text(f"illness,sex\n{rows}")
    seen = {"column": "illness"} if "mechanism" in release else {}
    knows: dict[str, Any] = {"attacker__goal": "attribute", "attacker__wants": ["illness"], "attacker__knows": ["sex"]}
    changes = knows | {"attacker__dataset_knowledge": "chosen", "attacker__tolerance": 0.05, "attacker__impact": "high"}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small(universe={"table": "people.csv"}, release=release | seen, **changes)))
    found = make_report(read_threat_model(path))
    assert "Within the tolerance" not in found.to_markdown() + found.sentence()
    assert "stays within what is tolerated" not in found.to_markdown()
    assert "Nothing here says whether the tolerance is kept: Somebody." in found.to_markdown()
    assert "Nothing is left to find out here" in found.sentence()
    assert [row[-1] for row in found.rows] == ["nothing to find out"]
    assert "How likely, how bad" not in found.to_markdown()
    (told,) = found.to_dict()["attackers"][0]["answers"]
    assert told["nothing_to_find_out"] is True
    assert "keeps_tolerance" not in told


def test_labels_of_any_length_leave_the_page_small(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text(f"label,count\n{'x' * 100_000},3\nb,7\n")
    path = tmp_path / "x.json"
    path.write_text(json.dumps(small(universe={"prior": "prior.csv"}, attacker__target_source=["chosen", "drawn"])))
    assert len(make_report(read_threat_model(path)).to_html()) < 100_000


def test_long_words_do_not_leave_their_place() -> None:
    assert wrapped("a bb cccccccccc d", 5) == ["a bb", "cccc…", "d"]
    assert wrapped("", 5) == [""]


def test_levels_of_risk_are_those_of_nist() -> None:
    """SP 800-30 Table I-2, row by row: the likelihood from very high to very low, the impact from very low up."""
    table = ["VL L M H VH", "VL L M H VH", "VL L M M H", "VL L L L M", "VL VL VL L L"]
    short = {"VL": "very low", "L": "low", "M": "moderate", "H": "high", "VH": "very high"}
    for likely, line in zip(reversed(LEVELS), table, strict=True):
        assert [risk_level(likely, impact) for impact in LEVELS] == [short[cell] for cell in line.split()]
    steps = [
        (0.04, "very low"),
        (0.2, "low"),
        (0.21, "moderate"),
        (0.79, "moderate"),
        (0.95, "high"),
        (1.0, "very high"),
    ]
    assert [likelihood(share) for share, _ in steps] == [level for _, level in steps]


def noisy(record: int, rng: Any) -> int:
    """Randomised response among two, at epsilon 2."""
    return int(record if rng.random() < 0.8808 else 1 - record)


@pytest.mark.slow
def test_an_audit_stands_beside_what_is_proved(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(audit(noisy, claim=2.0, records=[0, 1], runs=20_000).to_dict()))
    found = read_audit(path)
    assert found.verdict == "consistent with the claim"
    model = read_threat_model(EXAMPLES / "clinic.toml")
    page = make_report(model, found).to_html()
    rows = {
        row["what"]: row["epsilon"]
        for row in Tables(page).tables[
            next(name for name in Tables(page).tables if name.startswith("The true epsilon"))
        ]
    }
    assert rows["certified from below, by runs of the code"] == f">= {significant_down(found.certified, 4)}"
    assert rows["proved from above, for what the file describes"] == "<= 2"
    assert "An audit that finds nothing proves nothing" in page
    assert "Audited was noisy. This page cannot tell" in page
    weaker = json.loads(path.read_text()) | {"claim": 5.0}
    path.write_text(json.dumps(weaker))
    assert "code that keeps the one may break the other" in make_report(model, read_audit(path)).to_html()
    path.write_text(json.dumps(weaker | {"claim": 2.0, "neighbours": "add-remove"}))
    left_out = Tables(make_report(model, read_audit(path)).to_html()).tables
    (held,) = (held for name, held in left_out.items() if name.endswith("when one record is added or left out"))
    assert held[1]["epsilon"] == "none"
    path.write_text(json.dumps(weaker | {"epsilon_certified": 2.5, "verdict": "violated"}))
    assert "the code that was audited is not that release" in make_report(model, read_audit(path)).to_html()


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        (
            {"epsilon_certified": 2.5},
            1,
            "An audit refutes the promise: the epsilon of lab.noise is at least 2.5, above",
        ),
        ({"epsilon_certified": 1.5, "claim": 1.0}, 1, "An audit refutes a claim: the epsilon of lab.noise is at least"),
        ({"verdict": "undecided"}, 3, "An audit of lab.noise is undecided"),
        ({"verdict": "consistent with the claim", "claim": 5.0}, 3, "held lab.noise against epsilon 5 only"),
        ({"verdict": "consistent with the claim"}, 0, "found nothing against epsilon 2, which proves nothing"),
    ],
)
def test_what_an_audit_found_is_told_first_and_by_the_exit_code(
    change: dict[str, Any],
    code: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page that opens with good news of a release whose code is refuted is worse than none."""
    model, found, page = tmp_path / "calm.toml", tmp_path / "audit.json", tmp_path / "page.json"
    calm = (EXAMPLES / "clinic.toml").read_text().replace("tolerance = 0.05", "tolerance = 0.9")
    model.write_text(calm.replace("tolerance = 0.1", "tolerance = 0.9"))
    (tmp_path / "clinic.csv").write_text((EXAMPLES / "clinic.csv").read_text())
    whole = {"verdict": "violated", "epsilon_certified": 0.5, "claim": 2, "delta": 0, "alpha": 0.01, "sentence": "x"}
    found.write_text(json.dumps(whole | {"target": {"name": "lab.noise"}} | change))
    shown = run(capsys, monkeypatch, "report", str(model), "--audit", str(found))
    assert (shown[0], shown[1].count(told)) == (code, 1)
    written = run(capsys, monkeypatch, "report", str(model), "--audit", str(found), "--out", str(page))
    assert written[0] == code
    assert told in written[1].splitlines()[0]
    content = json.loads(page.read_text())
    verdict = {0: "consistent with the claim", 1: "violated", 3: "undecided"}[code]
    assert content["audit"]["of_this_release"]["verdict"] == verdict
    assert content["audit"]["of_this_release"]["epsilon_proved"] == pytest.approx(2.0)
    first = next(place for place, block in enumerate(content["content"]) if block.get("text") == "In short") + 1
    assert told in content["content"][first]["text"]
    tones = {block["tone"] for block in content["content"] if "tone" in block}
    assert ("good" in tones) == (code == 0)


@pytest.mark.parametrize(
    "change", [{"verdict": "fine"}, {"epsilon_certified": "x"}, {"claim": None}, {"sentence": 3}, {"neighbours": "x"}]
)
def test_what_is_no_audit_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    whole = {"verdict": "violated", "epsilon_certified": 1, "claim": 1, "delta": 0, "alpha": 0.01, "sentence": "x"}
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(whole))
    assert read_audit(path).certified == 1.0
    path.write_text(json.dumps(whole | change))
    with pytest.raises(DpriskError, match="is not what `dprisk audit --json` writes"):
        read_audit(path)


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_the_command_writes_it(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / f"report.{suffix}"
    code, told, _ = run(capsys, monkeypatch, "report", str(EXAMPLES / "clinic.toml"), "--out", str(out))
    assert code == 0
    assert told.splitlines() == [
        "Health insurer is right about 322 more of 1000 people who took part than of those who did not (anybody, drawn "
        "at random). Above the tolerance of 50 of 1000.",
        "Former partner says yes to 383 more of 1000 people with the record it looks for than of people at random (one "
        "chosen person: HIV). Above the tolerance of 50 of 1000.",
        "Journalist recognises at most 323 more of 1000 people who took part than of those who did not (anybody, drawn "
        "at random). Not shown to be within the tolerance of 100 of 1000: an attacker who knows or sees more is above "
        "it.",
        f"Wrote {out}.",
    ]
    assert "A clinic asks its patients for a diagnosis" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "report.pdf"), "must end in .html, .md or .json"),
        (("--out", "nowhere/report.html"), "cannot be written"),
        (("--audit", "nowhere.json"), "There is no file"),
        (("--audit", "audit.json", "--out", "audit.json"), "audit.json is the audit itself"),
        (("--data", "nowhere"), "There is no folder"),
    ],
)
def test_what_cannot_be_written_or_read_gets_one_sentence(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, monkeypatch, "report", str(EXAMPLES / "clinic.toml"), *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
