"""What every answer can do: numbers, a sentence, a table on the terminal, in a notebook, in pandas, in JSON.

A new kind of answer derives from `Answer` and says four things. The command, the notebook and reports show it without
another change.
"""

from abc import ABC, abstractmethod
from html import escape
from typing import Any

from dprisk.errors import fail

Row = tuple[str, ...]  # a cell for each column: what, how much, and what it means, unless the answer is a table

USUAL = ("what", "value", "meaning")
COLUMNS = ["what", "record", "value"]  # of the table of numbers


class Answer(ABC):
    """The answer to a question that somebody asked."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of its rows."""
        return USUAL

    @property
    def right_aligned(self) -> tuple[int, ...]:
        """The columns of its rows that hold numbers, by their place."""
        return (1,) if self.columns == USUAL else tuple(range(len(self.columns)))

    @property
    @abstractmethod
    def about(self) -> str:
        """What was asked about, in a line."""

    @property
    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """The numbers that matter, by name, ready for JSON."""

    @property
    @abstractmethod
    def rows(self) -> list[Row]:
        """The same for a person: what, how much, and what it means."""

    @abstractmethod
    def sentence(self) -> str:
        """The answer in words."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {**self.numbers, "sentence": self.sentence()}

    @property
    def compared(self) -> dict[str, Any]:
        """More numbers by name, which people compare answers by; none unless a kind of answer has some."""
        return {}

    def of_records(self) -> list[tuple[str, Any, float]]:
        """What is told of single records: what, the record, how much; nothing unless a kind of answer tells it."""
        return []

    def by_record(self) -> list[dict[str, Any]]:
        """The same, with all that is told of a record together."""
        told: dict[Any, dict[str, Any]] = {}
        for what, record, value in self.of_records():
            told.setdefault(record, {"record": record})[what] = value
        return list(told.values())

    def table(self) -> list[dict[str, Any]]:
        """A line for each number: what it is, the record that it is about (None: all of them), and its value."""
        overall = [(what, None, value) for what, value in {**self.numbers, **self.compared}.items()]
        return [dict(zip(COLUMNS, line, strict=True)) for line in [*overall, *self.of_records()]]

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            fail("to_pandas needs pandas: install it, or take table(), a list of dictionaries.")
        lines = self.table()
        return pandas.DataFrame(lines, columns=list(lines[0]) if lines else COLUMNS)

    def _repr_html_(self) -> str:
        def line(cells: Row, tag: str = "td") -> str:
            right = self.right_aligned
            styles = (" style='text-align:right'" if place in right else "" for place in range(len(cells)))
            parts = (f"<{tag}{style}>{escape(cell)}</{tag}>" for style, cell in zip(styles, cells, strict=True))
            return f"<tr>{''.join(parts)}</tr>"

        heading = "" if self.columns == USUAL else line(self.columns, "th")
        body = heading + "".join(map(line, self.rows))
        return f"<table><caption>{escape(self.about)}</caption>{body}</table><p>{escape(self.sentence())}</p>"
