"""Pictures drawn with matplotlib: into a notebook, or into a file that is the same each time it is written."""

from __future__ import annotations

import io
import math
import textwrap
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprisk.errors import InputFileError, MissingPackageError, ParameterError, require
from dprisk.pictures.picture import BLACK, COLOURS, Bars, Curve, Curves, Panel, Picture
from dprisk.pictures.placing import above, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

WIDTH, HEIGHT, BAR, LETTER = 4.6, 3.4, 0.34, 0.08  # inches: of a panel, a bar and a letter
ACROSS = 3  # panels side by side
FONT, LINE = 9.5, 1.3  # points, and the height of a line of text in font sizes
BESIDE = 1.06  # where labels begin, in widths of the axes
LEADER: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.7, "shrinkA": 2, "shrinkB": 2, "relpos": (0, 0.5)}
ROOM = 1.1  # above the highest curve, for its label
MOST_PANELS = 12
FORMATS = (".svg", ".png")
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT,
    "axes.edgecolor": "#9a9a9a",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": FONT + 0.5,
    "axes.titlelocation": "left",
    "text.parse_math": False,  # a label may hold a dollar sign
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "dprisk",  # names of parts follow from what they are, not from chance
}


def draw(picture: Picture, ax: Axes | None = None) -> Any:
    """Draw with pyplot, for a notebook: the axes, or an array of them where there are several panels.

    With `ax`, one panel is drawn there.
    """
    with _style():
        if ax is None:
            from matplotlib import pyplot

            figure = pyplot.figure(layout="constrained")
            axes = _drawn(picture, figure)
        else:
            require(_panels(picture) == 1, f"One axes cannot hold {_panels(picture)} panels; leave `ax` out.")
            axes = [ax]
            _fill(picture, axes)
    if len(axes) == 1:
        return axes[0]
    import numpy as np

    return np.array(axes, dtype=object)


def ready(path: str | Path) -> Path:
    """A path that a picture can be written to; what is wrong with it, or lacking, is told before anything is drawn."""
    _style()
    path = Path(path)
    told = f"A picture is written as {' or '.join(FORMATS)}; {path.name} ends in neither."
    require(path.suffix.lower() in FORMATS, told, ParameterError)
    require(path.parent.is_dir(), f"There is no folder {path.parent} to write {path.name} to.", InputFileError)
    return path


def write(picture: Picture, path: str | Path) -> None:
    """Write an SVG or a PNG file, by the ending of its name. The same picture gives the same file."""
    path = ready(path)
    path.write_bytes(_encoded(picture, path.suffix.lower().removeprefix(".")))


def svg(picture: Picture) -> str:
    """The picture as the text of an SVG file, also to be put into a page."""
    return _encoded(picture, "svg").decode()


def _encoded(picture: Picture, form: str) -> bytes:
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        _drawn(picture, figure)
        file = io.BytesIO()
        undated = {"Date": None} if form == "svg" else None
        figure.savefig(file, format=form, dpi=144, facecolor="white", metadata=undated)
    return file.getvalue()


def _style() -> AbstractContextManager[None]:
    """Our style, whatever the reader's settings are; a sentence where there is no matplotlib."""
    try:
        from matplotlib import style
    except ImportError:
        raise MissingPackageError("Pictures need matplotlib: pip install 'dprisk[plot]'.") from None
    return style.context(["default", STYLE])


def _panels(picture: Picture) -> int:
    return len(picture.panels) if isinstance(picture, Curves) else 1


def _drawn(picture: Picture, figure: Figure) -> list[Axes]:
    """The picture in a figure of the size that it needs."""
    if isinstance(picture, Bars):
        figure.set_size_inches(6.4, 1.1 + BAR * len(picture.bars))
        axes = [figure.add_subplot()]
    else:
        count = _panels(picture)
        require(
            count <= MOST_PANELS, f"{count} panels are too many to read; plot a part of the sweep with `where(...)`."
        )
        across = min(count, ACROSS)
        down = math.ceil(count / across)
        most = max(len(panel.curves) for panel in picture.panels)
        height = max(HEIGHT, 0.9 + most * FONT * LINE / 72)
        longest = max(len(curve.label) for panel in picture.panels for curve in panel.curves)
        figure.set_size_inches((WIDTH + LETTER * longest) * across, height * down + 0.3)
        grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel().tolist()
        for unused in grid[count:]:
            unused.remove()
        axes = grid[:count]
        for ax in axes:
            ax.tick_params(labelbottom=True, labelleft=True)
    _fill(picture, axes)
    return axes


def _fill(picture: Picture, axes: list[Axes]) -> None:
    if isinstance(picture, Bars):
        _bars(picture, axes[0])
        return
    for ax, panel in zip(axes, picture.panels, strict=True):
        _curves(picture, panel, ax)
    if len(axes) == 1:
        heading = axes[0].set_title(picture.heading)
    else:
        for ax, panel in zip(axes, picture.panels, strict=True):
            ax.set_title(panel.title)
        figure = axes[0].get_figure(root=True)
        assert figure is not None
        heading = figure.suptitle(picture.heading, x=0.01, ha="left", fontsize=FONT + 1.5)
    _place(picture, axes)
    _fit(heading)


def _curves(picture: Curves, panel: Panel, ax: Axes) -> None:
    if picture.logarithmic:
        ax.set_xscale("log")
    for curve in panel.curves:
        style = {"linestyle": (0, (4, 2)) if curve.dashed else "-", "linewidth": 2.4 if curve.bold else 1.6}
        marker = "o" if len(curve.x) == 1 or curve.low else ""
        colour = _darker(curve.colour) if curve.dashed else curve.colour  # seen where a bound is attained
        ax.plot(curve.x, curve.y, color=colour, marker=marker, markersize=3, **style)  # type: ignore[arg-type]
        if curve.low:
            ax.fill_between(curve.x, curve.low, curve.high, color=curve.colour, alpha=0.18, linewidth=0)
    if picture.mark is not None:
        ax.plot(*picture.mark, marker="o", markersize=6, color=BLACK, linestyle="")
    ax.set_xlabel(picture.across)
    values = [value for curve in panel.curves for value in (*curve.y, *curve.high)]
    ax.set_ylim(min(0.0, *values), max(ax.get_ylim()[1], ROOM * max(values)))
    ax.grid(axis="y", color="#e8e8e8", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.xaxis.set_major_formatter(_number)
    ax.yaxis.set_major_formatter(_number)


def _number(value: float, _: Any = None) -> str:
    return f"{value:.10g}"


def _place(picture: Curves, axes: list[Axes]) -> None:
    """Each curve's name to the right of its end, moved up or down as far as the others need, with a line to it.

    Where the ends are crowded, and the curves apart elsewhere, names stand on the curves instead.
    """
    labels = [[_label(ax, curve) for curve in panel.curves] for ax, panel in zip(axes, picture.panels, strict=True)]
    from matplotlib.text import Text

    figure = axes[0].get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # so that the size of axes and labels is known
    for ax, panel, own in zip(axes, picture.panels, labels, strict=True):
        to_axes = ax.transData + ax.transAxes.inverted()
        box = ax.get_window_extent()
        gap = FONT * LINE * figure.dpi / 72 / box.height
        lines = [
            list(map(tuple, to_axes.transform(sorted(zip(curve.x, curve.y, strict=True))))) for curve in panel.curves
        ]
        ends = [line[-1][1] for line in lines]
        crowded = any(after - before < 0.9 * gap for before, after in pairwise(sorted(ends)))
        widths = [Text.get_window_extent(label).width / box.width for label in own]  # without the line to the curve
        on_top = above(lines, widths, gap) if crowded else None
        for label in own if on_top else ():
            label.set(ha="center", va="bottom")
            label.arrow_patch.set_visible(False)
        beside = [(BESIDE, place) for place in spread(ends, gap, gap / 2, 1 - gap / 2)]
        for label, place in zip(own, on_top or beside, strict=True):
            label.set_position(place)


def _label(ax: Axes, curve: Curve) -> Any:
    return ax.annotate(
        curve.label,
        xy=_end(curve),
        xycoords="data",
        xytext=(BESIDE, 0.5),
        textcoords="axes fraction",
        va="center",
        ha="left",
        color=_darker(curve.colour),
        fontweight="bold" if curve.bold else "normal",
        arrowprops={
            "arrowstyle": "-",
            "color": curve.colour,
            "linewidth": 0.7,
            "shrinkA": 2,
            "shrinkB": 2,
            "relpos": (0, 0.5),
        },
        annotation_clip=False,
    )


def _end(curve: Curve) -> tuple[float, float]:
    last = max(range(len(curve.x)), key=lambda number: curve.x[number])
    return curve.x[last], curve.y[last]


def _darker(colour: str) -> str:
    """Dark enough to be read on white."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part * 0.65):02x}" for part in parts)


def _bars(picture: Bars, ax: Axes) -> None:
    places = range(len(picture.bars))
    for place, bar in zip(places, picture.bars, strict=True):
        face = "none" if bar.open else COLOURS[0]
        width = 1.6 if bar.open else 0.0
        hatch = "////" if bar.open else None
        ax.barh(place, bar.value, 0.6, facecolor=face, edgecolor=COLOURS[0], linewidth=width, hatch=hatch)
        end = bar.value
        if bar.interval is not None:
            ax.plot(bar.interval, (place, place), color=BLACK, linewidth=1.4)
            end = max(end, bar.interval[1])
        weight = "bold" if bar.bold else "normal"
        ax.annotate(
            bar.shown,
            (end, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontweight=weight,
            annotation_clip=False,
        )
    ax.set_yticks(list(places), [bar.label for bar in picture.bars])
    for tick, bar in zip(ax.get_yticklabels(), picture.bars, strict=True):
        tick.set_fontweight("bold" if bar.bold else "normal")
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.set_xlim(left=min(0.0, *(bar.value for bar in picture.bars)))
    ax.xaxis.set_major_formatter(_number)
    heading, figure = ax.set_title(picture.heading), ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    _fit(heading)


def _fit(heading: Text) -> None:
    """Break a heading whose place is known into lines where it would be cut at the edge of the figure."""
    figure = heading.get_figure(root=True)
    assert figure is not None
    box = heading.get_window_extent()
    room = (figure.bbox.x1 - box.x0) / max(1.0, box.width)
    if room < 1:
        text = heading.get_text()
        heading.set_text(textwrap.fill(text, max(10, int(0.95 * room * len(text))), break_on_hyphens=False))
