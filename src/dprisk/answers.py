"""What every answer can do: numbers, a sentence, a table on the terminal, in a notebook, in pandas, in JSON.

A new kind of answer derives from `Answer` and says four things. The command, the notebook and reports show it without
another change.
"""

from abc import ABC, abstractmethod
from html import escape
from typing import Any

from dprisk.errors import fail

Row = tuple[str, str, str]  # what, how much, and what it means
COLUMNS = ["what", "record", "value"]


class Answer(ABC):
    """The answer to a question that somebody asked."""

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
        return pandas.DataFrame(self.table(), columns=COLUMNS)

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(much)}</td><td>{escape(means)}</td></tr>"
            for what, much, means in self.rows
        )
        return f"<table><caption>{escape(self.about)}</caption>{body}</table><p>{escape(self.sentence())}</p>"
