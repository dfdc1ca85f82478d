"""The house: which room may know which, how large a room may be, and what the front door loads."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from radon.complexity import cc_visit
from radon.visitors import Class

import dprisk

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dprisk"
MODULES = {
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
MOST_LINES, MOST_COMPLEX = 400, 15


def imports(name: str) -> set[str]:
    """The modules of this package that a module imports, also inside functions and for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative path"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else str(node.module))
    return {module for module in found if module in MODULES}


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    return {name: imports(name) for name in MODULES}


def layers() -> dict[str, int]:
    """The layers of docs/architecture.md, lowest first: each room or module with its number."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.search(r"```text\n(.*?)```", page, re.S)
    assert drawn is not None
    lines = [line for line in drawn.group(1).splitlines() if line.strip()]
    return {f"dprisk.{room}": number for number, line in enumerate(lines) for room in line.split("#")[0].split()}


def layer_of(module: str, known: dict[str, int]) -> int:
    """The number of the innermost room that holds a module."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        if (room := ".".join(parts[:length])) in known:
            return known[room]
    raise AssertionError(f"{module} is in no layer of docs/architecture.md")


def test_nothing_lower_imports_anything_higher() -> None:
    known = layers()
    for name, imported in graph().items():
        if name in ("dprisk", "dprisk.__main__"):
            continue
        for other in imported - {"dprisk"}:
            assert layer_of(other, known) <= layer_of(name, known), f"{name} imports {other}"


def test_every_layer_that_is_drawn_exists() -> None:
    for room in layers():
        assert room in MODULES, room


def test_no_module_imports_itself_by_a_detour() -> None:
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for other in graph()[name]:
                walk(other, (*way, name))
            done.add(name)

    for name in MODULES:
        walk(name, ())


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_is_short_and_found_by_its_path(name: str) -> None:
    assert len(MODULES[name].read_text().splitlines()) <= MOST_LINES
    if name == "dprisk.__main__":
        return
    importlib.import_module(name)
    found: object = dprisk
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert isinstance(found, ModuleType)
    assert found.__name__ == name


def test_no_function_is_a_maze() -> None:
    for name, path in MODULES.items():
        for block in cc_visit(path.read_text()):
            assert block.complexity <= MOST_COMPLEX or isinstance(block, Class), f"{block.name} in {name}"


def test_the_front_door_is_small_and_loads_nothing() -> None:
    assert 30 <= len(dprisk.__all__) <= 40
    heavy = ("numpy", "scipy", "rich", "click", "dp_accounting", "torch", "pandas")
    code = f"import sys, dprisk; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_every_name_at_the_front_door_is_what_its_room_has() -> None:
    for name in dprisk.__all__:
        found = getattr(dprisk, name)
        assert found.__name__ == name
        assert found.__module__.startswith("dprisk.")


def test_every_room_has_its_row_in_the_page() -> None:
    """A new module needs a line that says what it is for."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path in MODULES.values():
        if path.name in ("__init__.py", "__main__.py"):
            continue
        assert f"`{path.relative_to(SOURCE)}`" in page, f"docs/architecture.md does not name {path.relative_to(SOURCE)}"
