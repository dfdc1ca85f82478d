"""Pictures: what is drawn is what was computed, labels are there and apart, files are the same each time."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.text import Annotation, Text
from PIL import Image

from dprisk import (
    GRR,
    OLH,
    OUE,
    SUE,
    Laplace,
    Prior,
    PureDP,
    SubsetSelection,
    Sweep,
    Threat,
    assess,
    audit,
    calibrate,
    sweep,
)
from dprisk.errors import DpriskError
from dprisk.mechanisms import SHE
from dprisk.pictures import Bar, Bars, Curve, Curves, Panel, draw, write
from dprisk.pictures.picture import COLOURS
from dprisk.pictures.placing import above, spread

UNIFORM = Threat(Prior.uniform(100))
NEAR = Threat.reconstruction(Prior.uniform(21), within=2)
SIX = {
    "GRR": GRR(100, 1.0),
    "OUE": OUE(100, 1.0),
    "SUE": SUE(100, 1.0),
    "subset selection": SubsetSelection(100, 1.0),
    "OLH": OLH(100, 1.0),
    "any mechanism": PureDP(1.0),
}
THREE = {"uniform": Prior.uniform(21), "zipf": Prior.zipf(21), "ends": Prior([0.5, *[0.0] * 19, 0.5])}
TWO = {name: THREE[name] for name in ("uniform", "zipf")}
SWEEPS: dict[str, Callable[[], Sweep]] = {
    "six side by side": lambda: sweep(SIX, UNIFORM, epsilon=np.linspace(0.1, 8, 20)),
    "six at small epsilon": lambda: sweep(SIX, UNIFORM, epsilon=np.linspace(0.01, 0.1, 5)),
    "huge epsilon": lambda: sweep([GRR(9, 1.0), OUE(9, 1.0)], Threat(Prior.zipf(9)), epsilon=[0.1, 9, 900]),
    "priors": lambda: sweep(Laplace(21, 1.0), NEAR, prior=THREE, epsilon=[0.5, 2, 8, 30]),
    "distances": lambda: sweep(Laplace(21, 4.0), NEAR, prior=THREE, within=range(21)),
    "one curve": lambda: sweep(GRR(100, 1.0), UNIFORM, epsilon=[1, 2, 3], bounds=True),
    "an estimate": lambda: sweep(SHE(4, 1.0), Threat(Prior.zipf(4)), epsilon=[1, 3], runs=300),
    "panels": lambda: sweep([GRR(21, 1.0), Laplace(21, 1.0)], NEAR, prior=TWO, within=[0, 3], epsilon=[1, 4]),
    "bars": lambda: sweep(Laplace(21, 1.0), NEAR, prior=THREE),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@cache
def swept(name: str) -> Sweep:
    return SWEEPS[name]()


def axes_of(drawn: Any) -> list[Any]:
    return list(np.atleast_1d(drawn).ravel())


def curves_of(found: Sweep, which: str = "advantage") -> list[Curve]:
    picture = found.picture(which)
    assert isinstance(picture, Curves)
    return [curve for panel in picture.panels for curve in panel.curves]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SWEEPS if name != "bars"])
def test_lines_are_the_numbers_of_the_sweep(name: str) -> None:
    """Every case is drawn once, at its place, and nothing else is."""
    found = swept(name)
    drawn = [line for ax in axes_of(found.plot()) for line in ax.get_lines()]
    points = [(x, y) for line in drawn for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    along = "within" if name == "distances" else "epsilon"
    wanted = [(record[along], record["advantage"]) for record in found.records]
    wanted += [(record[along], record["advantage_bound"]) for record in found.records if "advantage_bound" in record]
    assert sorted(points) == sorted(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_files_have_every_label_and_are_the_same_each_time(name: str, tmp_path: Path) -> None:
    found = swept(name)
    for file in ("one.svg", "two.svg"):
        write(found.picture(), tmp_path / file)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert "date" not in text.lower()
    picture = found.picture()
    parts = list(picture.bars) if isinstance(picture, Bars) else curves_of(found)
    assert all(f">{part.label}<" in text for part in parts)
    assert f">{picture.heading}<" in text


@pytest.mark.slow
def test_a_png_is_a_picture_and_the_same_each_time(tmp_path: Path) -> None:
    for file in ("one.png", "two.PNG"):
        write(swept("one curve").picture(), tmp_path / file)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.PNG").read_bytes()
    with Image.open(tmp_path / "one.png") as image:
        assert image.width > 400
        assert len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SWEEPS if name != "bars"])
def test_labels_are_apart_and_inside_the_picture(name: str) -> None:
    axes = axes_of(swept(name).plot())
    figure = axes[0].get_figure()
    figure.draw_without_rendering()
    labels = [text for ax in axes for text in ax.texts if isinstance(text, Annotation)]
    boxes = [Text.get_window_extent(label) for label in labels]
    for one, other in combinations(boxes, 2):
        assert min(one.x1, other.x1) <= max(one.x0, other.x0) or min(one.y1, other.y1) <= max(one.y0, other.y0) + 1
    for box in boxes:
        assert box.x1 <= figure.bbox.x1 + 1
        assert box.y1 <= figure.bbox.y1 + 1


def test_the_worst_prior_is_named_in_the_picture() -> None:
    found = sweep(Laplace(21, 1.0), NEAR, prior=THREE, epsilon=[0.5, 2])
    over = [curve.label for curve in curves_of(swept("priors"))]
    assert over == ["uniform (worst from 30 on)", "zipf", "ends (worst up to 8)"]
    labels = [curve.label for curve in curves_of(found)]
    assert labels == ["uniform", "zipf", "ends (worst)"]
    bars = found.where(epsilon=2).picture()
    assert isinstance(bars, Bars)
    assert bars.bars[0].label == "ends (worst)"
    assert [bar.value for bar in bars.bars] == sorted((bar.value for bar in bars.bars), reverse=True)


def test_bounds_are_dashed_and_estimates_have_bands() -> None:
    beside = curves_of(sweep(GRR(6, 1.0), Threat(Prior.zipf(6)), epsilon=[1, 2], bounds=True), "success")
    assert [(curve.label, curve.dashed) for curve in beside] == [
        ("exact", False),
        ("at most, by its guarantee", True),
        ("without the report", True),
    ]
    assert beside[2].y == (Threat(Prior.zipf(6)).baseline,) * 2
    drawn = sweep(SHE(4, 1.0), Threat(Prior.zipf(4)), epsilon=[1.0, 3.0], runs=300)
    (estimate,) = curves_of(drawn)
    assert estimate.low == tuple(drawn.column("advantage_low"))
    assert estimate.high == tuple(drawn.column("advantage_high"))
    assert estimate.label == "estimated"


def test_answers_draw_themselves() -> None:
    risk, worst = assess(GRR(6, 1.0), Threat(Prior.zipf(6))), assess(PureDP(1.0), Threat(Prior.zipf(6)))
    for answer, hatched in ((risk, 0), (worst, 2)):
        bars = answer.plot().patches
        assert [bar.get_width() for bar in bars] == [answer.baseline, answer.success, answer.advantage]
        assert sum(bar.get_hatch() is not None for bar in bars) == hatched
    found = calibrate(GRR(6, 1.0), Threat(Prior.zipf(6)), advantage=0.1)
    picture = found.picture()
    assert picture.mark == (found.value, found.advantage)
    curve, limit = picture.panels[0].curves
    assert (limit.label, limit.y) == ("tolerated: 0.1", (0.1, 0.1))
    assert curve.y[curve.x.index(found.value)] == found.advantage
    own = pyplot.figure().add_subplot()
    assert found.plot(ax=own) is own


def test_the_reader_s_settings_are_left_alone_and_do_not_matter(tmp_path: Path) -> None:
    found = sweep(GRR(6, 1.0), Threat(Prior.zipf(6)), epsilon=[1, 2])
    write(found.picture(), tmp_path / "before.svg")
    with pyplot.rc_context({"font.size": 30, "lines.linewidth": 9}):
        write(found.picture(), tmp_path / "after.svg")
        assert pyplot.rcParams["font.size"] == 30
    assert (tmp_path / "before.svg").read_text() == (tmp_path / "after.svg").read_text()


def test_colours_differ_for_every_colour_vision() -> None:
    """Far apart also as protanopes and deuteranopes see them (Vienot, Brettel and Mollon 1999, linear RGB)."""
    seen = {
        "protan": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
        "deutan": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    }
    rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in COLOURS])
    for matrix in seen.values():
        shown = np.clip((rgb**2.2) @ matrix.T, 0, 1) ** (1 / 2.2)
        for some, least in ((shown, 0.1), (shown[:5], 0.2)):  # of 0 to 1.73; the first five are used most
            assert min(np.linalg.norm(one - other) for one, other in combinations(some, 2)) > least


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda folder, picture: write(picture, folder / "risk.pdf"), "ends in neither"),
        (lambda folder, picture: write(picture, folder / "none" / "risk.svg"), "There is no folder"),
        (lambda folder, picture: draw(_many(picture)), "13 panels are too many"),
        (lambda folder, picture: draw(_many(picture), pyplot.figure().add_subplot()), "cannot hold 13 panels"),
    ],
)
def test_what_cannot_be_drawn_gets_one_sentence(
    wrong: Callable[[Path, Curves], Any], message: str, tmp_path: Path
) -> None:
    picture = Curves("heading", "across", (Panel("", (Curve("it", (0, 1), (0, 1), COLOURS[0]),)),))
    with pytest.raises(DpriskError, match=message):
        wrong(tmp_path, picture)


def _many(picture: Curves) -> Curves:
    return Curves(picture.heading, picture.across, picture.panels * 13)


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    picture = Bars("heading", (Bar("it", 0.5, "0.5"),))
    for ask in (lambda: draw(picture), lambda: write(picture, tmp_path / "it.svg")):
        with pytest.raises(DpriskError, match=r"pip install 'dprisk\[plot\]'"):
            ask()


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_a_picture_is_drawn() -> None:
    code = (
        "import sys, dprisk.cli.commands; from dprisk import GRR, Prior, Threat, sweep;"
        "sweep(GRR(3, 1.0), Threat(Prior.uniform(3)), epsilon=[1, 2]).picture();"
        "print([name for name in ('matplotlib', 'pandas', 'polars') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_labels_are_spread_in_order_with_gaps(wanted: list[float], gap: float) -> None:
    places = spread(wanted, gap, 0.0, 1.0)
    order = np.argsort(wanted, kind="stable")
    assert np.all(np.diff(np.array(places)[order]) >= gap - 1e-9)
    if (len(wanted) - 1) * gap <= 1:
        assert min(places) >= -1e-9
        assert max(places) <= 1 + 1e-9
    apart = np.sort(wanted)
    if np.all(np.diff(apart) >= gap) and apart[0] >= 0 and apart[-1] <= 1:
        assert np.allclose(places, wanted)  # nobody is moved without need


@given(st.lists(st.lists(st.floats(0, 0.9), min_size=5, max_size=5), min_size=1, max_size=4), st.floats(0.05, 0.4))
def test_a_label_on_a_curve_touches_no_curve(heights: list[list[float]], width: float) -> None:
    lines = [list(zip(np.linspace(0, 1, 5).tolist(), line, strict=True)) for line in heights]
    places = above(lines, [width] * len(lines), 0.06)
    for x, bottom in places or []:
        grid = np.linspace(x - width / 2, x + width / 2, 101)
        assert 0 <= grid[0] <= grid[-1] <= 1
        assert bottom + 0.06 <= 1
        for line in heights:
            y = np.interp(grid, np.linspace(0, 1, 5), line)
            assert np.all((y <= bottom) | (y >= bottom + 0.06))


def test_labels_stand_on_curves_that_end_at_one_point() -> None:
    lines = [[(0.0, 0.8), (0.9, 0.8), (1.0, 0.0)], [(0.0, 0.3), (0.9, 0.3), (1.0, 0.0)]]
    places = above(lines, [0.3, 0.2], 0.06)
    assert places is not None
    assert all(0.8 < bottom < 0.82 or 0.3 < bottom < 0.32 for _, bottom in places)
    assert above([[(0.0, 0.5), (1.0, 0.5)]] * 2, [0.2, 0.2], 0.06) is None


def test_a_long_heading_is_not_cut() -> None:
    """It takes several lines, all within the figure."""
    picture = Bars("a heading of many words, " * 6, (Bar("right without the report (baseline)", 0.5, "0.5"),))
    ax = draw(picture)
    figure = ax.get_figure()
    figure.draw_without_rendering()
    title = next(child for child in ax.get_children() if getattr(child, "get_text", str)() == ax.get_title("left"))
    assert "\n" in ax.get_title("left")
    assert title.get_window_extent().x1 <= figure.bbox.x1
    assert title.get_window_extent().y1 <= figure.bbox.y1


def test_the_curve_of_an_audit_is_drawn() -> None:
    report = audit(GRR(5, 1.0), runs=5000)
    (panel,) = report.picture().panels
    found, claimed = panel.curves
    assert dict(zip(found.x, found.y, strict=True)) == dict(report.curve(found.x))
    assert set(claimed.y) == {1.0}
    assert report.plot().get_xscale() == "log"
