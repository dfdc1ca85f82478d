"""What every answer can do: numbers, a table, a sentence, JSON, and a table in a notebook.

A new kind of answer derives from `Answer` and says four things. The command, the notebook and reports show it without
another change.
"""

from abc import ABC, abstractmethod
from html import escape
from typing import Any

Row = tuple[str, str, str]  # what, how much, and what it means


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

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(much)}</td><td>{escape(means)}</td></tr>"
            for what, much, means in self.rows
        )
        return f"<table><caption>{escape(self.about)}</caption>{body}</table><p>{escape(self.sentence())}</p>"
