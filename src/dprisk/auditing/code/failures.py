"""What a run gave that gave no output: what kind of failure it was, and what was said."""

from __future__ import annotations

import re
from dataclasses import dataclass

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")  # of an object, another one in every run
MOST_SAID = 200  # characters of a message


@dataclass(frozen=True)
class Failure:
    """The name of the exception, or that the time was up, and its message, which may hold what it was about."""

    kind: str
    message: str = ""

    @classmethod
    def of(cls, problem: BaseException) -> Failure:
        """What an exception tells: the beginning of its message, in which no object has its own address."""
        try:
            said = " ".join(str(problem).split())
        except Exception:  # of a class whose messages cannot be written
            said = ""
        return cls(type(problem).__name__, ADDRESS.sub("0x...", said)[:MOST_SAID])

    def __str__(self) -> str:
        return f"{self.kind}{': ' * bool(self.message)}{self.message}"

    def __repr__(self) -> str:
        return f"a failure ({self})"
