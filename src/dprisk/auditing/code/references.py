"""Code that is named by text: what it is called, where it is looked for, and what is said if it is not there."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dprisk.auditing.code.adapters import NEEDS
from dprisk.auditing.code.target import name_of
from dprisk.errors import TargetError, fail


@dataclass(frozen=True)
class Reference:
    """Code named by text, "package.module:function", imported anew in every process."""

    text: str
    directory: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """The name, checked for its form; modules are looked for in the current directory too."""
        module, colon, function = text.partition(":")
        parts = [*module.split("."), *function.split(".")]
        path = os.path.relpath(module).removesuffix(".py") if colon and module else ""  # as from the current directory
        meant = f"{path.replace(os.sep, '.')}:{function}" if colon else ":".join(text.rsplit(".", 1))
        is_near = (
            bool(function) is bool(colon)
            and not meant.endswith(":")
            and meant != text
            and not text.endswith(".py")
            and not path.startswith("..")
        )
        near = f"; did you mean {meant!r}?" if is_near else "."
        if not colon or ".py:" in text or not all(part.isidentifier() for part in parts):
            fail(f"Code is named as package.module:function, got {text!r}{near}", TargetError)
        return cls(text, os.getcwd())

    def load(self) -> Any:
        """The object of that name. The directory stays on the module search path, as with `python -m`."""
        name, _, path = self.text.partition(":")
        if self.directory not in sys.path:
            sys.path.insert(0, self.directory)
        try:
            found: Any = importlib.import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name is not None and (name == problem.name or name.startswith(problem.name + ".")):
                message = f"There is no module {problem.name!r}, neither installed nor in {self.directory}."
                raise TargetError(message) from problem
            raise TargetError(f"{name} imports {problem.name!r}, which is not installed.{_hint(problem)}") from problem
        except (Exception, SystemExit) as problem:
            message = f"{name} fails when it is imported: {type(problem).__name__}: {problem}.{_hint(problem)}"
            raise TargetError(message) from problem
        for part in path.split("."):
            if not hasattr(found, part):
                near = difflib.get_close_matches(part, dir(found), n=1)
                where = name if isinstance(found, ModuleType) else name_of(found)
                fail(f"{where} has no {part!r}" + (f"; did you mean {near[0]!r}?" if near else "."), TargetError)
            found = getattr(found, part)
        return found


def _hint(problem: BaseException) -> str:
    """What a library that fails to import is known to need."""
    roots = {
        str(frame.f_globals.get("__name__", "")).split(".")[0] for frame, _ in traceback.walk_tb(problem.__traceback__)
    }
    known = [NEEDS[root] for root in sorted(roots) if root in NEEDS]
    return f" {known[0]}." if known else ""
