"""An assessment as a table: on the terminal and in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape

from rich.table import Table as RichTable

from dprisk.assessment import Risk, WorstCase, rounded_up
from dprisk.bounds import Bound, Value
from dprisk.calibration import Calibration
from dprisk.errors import DpriskError
from dprisk.mechanisms import Additive, SetProtocol

MOST_AT_RISK = 3
SMALL = 1000  # records up to which breakdown and bounds are shown without being asked for

Row = tuple[str, str, str]


def rows(assessment: Risk | WorstCase) -> list[Row]:
    """What, how much, and what it means."""
    mark = "<= " if isinstance(assessment, WorstCase) else ""
    lines = [
        ("baseline", _digits(assessment.baseline), "guessed right without the report"),
        ("success (ReRo)", mark + _number(assessment, "success"), "guessed right with the report, at best"),
        ("advantage (RAD)", mark + _number(assessment, "advantage"), "right on participants minus right on others"),
        (
            "normalised",
            f"{100 * assessment.normalised_advantage:.1f} %",
            "100 %: right on all participants, on no other",
        ),
    ]
    return lines + (_mechanism_rows(assessment) if isinstance(assessment, Risk) else _bound_rows(assessment))


def _mechanism_rows(risk: Risk) -> list[Row]:
    if risk.estimate:
        measured = f"from {risk.estimate.runs} outputs, intervals at {100 * (1 - risk.estimate.alpha):g} %"
        return [("computed", "estimate", measured)]
    lines = [("computed", "exactly", "no sampling error")]
    if not risk.optimum.is_proven:
        lines = [("computed", "numerically", f"error about {risk.optimum.error:.0e}")]
    return lines + _at_risk(risk) + _comparison(risk) if _is_quick(risk) else lines


def _is_quick(risk: Risk) -> bool:
    """Whether breakdown and bounds cost little beside the result itself."""
    size = risk.mechanism.size
    structured = isinstance(risk.mechanism, SetProtocol) and risk.threat.success.is_exact
    on_a_line = isinstance(risk.mechanism, Additive) and size <= SMALL // 10
    return size <= SMALL and (structured or on_a_line or size * risk.mechanism.n_outputs <= SMALL**2)


def _bound_rows(worst: WorstCase) -> list[Row]:
    return [
        (f"{which} by", "attained" if value.attained else "bound", value.bound.source)
        for which, value in (("success", worst.success_bound), ("advantage", worst.advantage_bound))
    ]


def _at_risk(risk: Risk) -> list[Row]:
    """The records most at risk, where that is known and differs between records."""
    try:
        worst = risk.most_at_risk(MOST_AT_RISK)
    except DpriskError:  # no list of outputs to break the risk down by
        return []
    if worst[0][1] - min(risk.by_record[risk.threat.prior.support]) < 1e-9:
        return []
    return [("most at risk", _digits(advantage), str(name)) for name, advantage in worst]


def _comparison(risk: Risk) -> list[Row]:
    """What the mechanism's guarantee alone would tell, where that is known."""
    try:
        worst = risk.bounds
    except DpriskError:
        return []
    return [
        ("bound on success", rounded_up(worst.success, 4), worst.success_bound.bound.source),
        ("bound on advantage", rounded_up(worst.advantage, 4), worst.advantage_bound.bound.source),
    ]


def _number(assessment: Risk | WorstCase, which: str) -> str:
    value = getattr(assessment, which)
    measured = assessment.estimate if isinstance(assessment, Risk) else None
    if isinstance(assessment, WorstCase):
        return rounded_up(value, 4)
    if measured is None:
        return _digits(value)
    low, high = getattr(measured, f"{which}_interval")
    return f"{_digits(value)} [{_digits(low)}, {_digits(high)}]"


def _digits(value: float) -> str:
    """Four decimals, or three significant digits where these would vanish."""
    return f"{value:.4f}" if value >= 0.001 or value == 0 else f"{value:.2e}"


def as_table(assessment: Risk | WorstCase) -> RichTable:
    """For the terminal."""
    subject = assessment.guarantee if isinstance(assessment, WorstCase) else assessment.mechanism
    return _table(repr(subject), ("what", "value", "meaning"), rows(assessment))


def bounds_table(values: Sequence[Value]) -> RichTable:
    """Every bound that applies, tightest first."""
    lines = [
        (
            value.bound.bounds,
            rounded_up(value.number),
            value.bound.name,
            value.bound.source,
            "yes" if value.attained else "",
        )
        for value in values
    ]
    return _table("Bounds that apply", ("bounds", "value", "name", "source", "attained"), lines)


def registry_table(which: str, registry: Iterable[Bound]) -> RichTable:
    """The bounds on one quantity, with what they need and who proved them."""
    lines = [(bound.name, bound.needs(), bound.source) for bound in registry if bound.bounds == which]
    return _table(f"Bounds on the {which}", ("name", "needs", "source"), lines)


def calibration_table(calibration: Calibration) -> RichTable:
    """The parameter found and what else would have been chosen."""
    value = "any" if calibration.unlimited else f"{calibration.value:.6g}"
    lines = [(calibration.parameter, value, f"keeps {calibration.goal}")]
    lines += [(f"achieved {what}", f"{number:.6g}", "") for what, number in calibration.achieved.items()]
    for other in calibration.alternatives:
        value = "any" if other.found.unlimited else f"{other.value:.6g}"
        lines.append((f"{calibration.parameter} by {other.name}", value, other.meaning))
    lines += [(what, f"{number:.6g}", "") for what, number in calibration.utility.items()]
    return _table(repr(calibration.subject), ("what", "value", "meaning"), lines)


def _table(title: str, headings: tuple[str, ...], lines: Sequence[Sequence[str]]) -> RichTable:
    table = RichTable(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for line in lines:
        table.add_row(*line)
    return table


def as_html(assessment: Risk | WorstCase) -> str:
    """For a notebook."""
    body = "".join(
        f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(value)}</td><td>{escape(meaning)}</td></tr>"
        for what, value, meaning in rows(assessment)
    )
    return f"<table>{body}</table><p>{escape(assessment.sentence())}</p>"
