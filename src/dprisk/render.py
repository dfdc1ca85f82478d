"""A risk as a table: on the terminal and in a notebook."""

from html import escape

from rich.table import Table as RichTable

from dprisk.assess import Risk
from dprisk.errors import DpriskError

MOST_AT_RISK = 3


def rows(risk: Risk) -> list[tuple[str, str, str]]:
    """What, how much, and what it means."""
    lines = [
        ("baseline", f"{risk.baseline:.4f}", "guessed right without the report"),
        ("success (ReRo)", _number(risk.success, risk, "success"), "guessed right with the report, at best"),
        (
            "advantage (RAD)",
            _number(risk.advantage, risk, "advantage"),
            "right on participants minus right on others, at best",
        ),
        (
            "of the largest possible",
            f"{100 * risk.normalised_advantage:.1f} %",
            "100 % is publishing the record itself",
        ),
    ]
    if risk.estimate:
        measured = f"from {risk.estimate.samples} outputs, intervals at {100 * risk.estimate.confidence:g} %"
        lines.append(("computed", "estimate", measured))
    else:
        lines.append(("computed", "exactly", "no sampling error"))
    return lines + _at_risk(risk)


def _at_risk(risk: Risk) -> list[tuple[str, str, str]]:
    """The records most at risk, where that is cheap to know and differs between records."""
    if risk.estimate or risk.mechanism.size > 10_000:
        return []
    try:
        worst = risk.most_at_risk(MOST_AT_RISK)
    except DpriskError:  # no list of outputs to break the risk down by
        return []
    if worst[0][1] - min(risk.by_record[risk.threat.prior.support]) < 1e-9:
        return []
    return [("most at risk", f"{advantage:.4f}", str(name)) for name, advantage in worst]


def _number(value: float, risk: Risk, which: str) -> str:
    if risk.estimate is None:
        return f"{value:.4f}"
    low, high = getattr(risk.estimate, f"{which}_interval")
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def as_table(risk: Risk) -> RichTable:
    """For the terminal."""
    table = RichTable(title=repr(risk.mechanism), title_justify="left")
    for heading, justify in (("what", "left"), ("value", "right"), ("meaning", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows(risk):
        table.add_row(*row)
    return table


def as_html(risk: Risk) -> str:
    """For a notebook."""
    body = "".join(
        f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(value)}</td><td>{escape(meaning)}</td></tr>"
        for what, value, meaning in rows(risk)
    )
    return f"<table>{body}</table><p>{escape(risk.sentence())}</p>"
