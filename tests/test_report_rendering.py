"""The report as a reader sees it, at a desk, on a telephone and on paper, in the light and in the dark."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprisk import audit
from dprisk.report import read_audit
from tests import browser
from tests.test_report import noisy, report

AXE = "axe-core@4.14.0"
DESK, TELEPHONE = 1280, 360
NAMES = ("clinic", "births", "telemetry", "attaxonomy")
pytestmark = pytest.mark.slow

# What is wrong with the page that is shown: a list of sentences.
FAULTS = r"""
(() => {
  const faults = [], page = document.scrollingElement;
  const name = (element) => element.tagName + " " + element.textContent.trim().slice(0, 60);
  if (page.scrollWidth > innerWidth) faults.push(`the page is ${page.scrollWidth} wide, the window ${innerWidth}`);
  for (const element of document.querySelectorAll("main *, header *")) {
    const box = element.getBoundingClientRect();
    if (box.right > innerWidth + 1 && !element.closest("thead, svg")) faults.push("outside: " + name(element));
  }
  for (const figure of document.querySelectorAll("figure")) {
    const shown = [...figure.querySelectorAll(":scope > svg")].filter((it) => it.getBoundingClientRect().height > 0);
    if (!figure.querySelector("pre") && shown.length !== 1) faults.push(`${shown.length} pictures: ` + name(figure));
    for (const drawing of shown) {
      const edge = drawing.getBoundingClientRect();
      for (const text of drawing.querySelectorAll("text")) {
        const box = text.getBoundingClientRect();
        const inside = box.left > edge.left - 2 && box.right < edge.right + 2 && box.bottom < edge.bottom + 2;
        if (!inside) faults.push("text leaves the picture: " + text.textContent);
        if (box.height < 9) faults.push("text too small: " + text.textContent);
      }
    }
  }
  return faults;
})()
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of the examples; that of the clinic with an audit."""
    folder = tmp_path_factory.mktemp("reports")
    path = folder / "audit.json"
    path.write_text(json.dumps(audit(noisy, claim=2.0, records=[0, 1], runs=20_000).to_dict()))
    made = {}
    for name in NAMES:
        shown = replace(report(name), audit=read_audit(path)) if name == "clinic" else report(name)
        made[name] = shown.write(folder / f"{name}.html")
    return made


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm to fetch axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--fetch-retries=0", AXE]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=30)
    except subprocess.SubprocessError:
        pytest.skip(f"npm cannot fetch {AXE} here")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def shown(window: browser.Page, page: Path, width: int, theme: str) -> None:
    """A page that nobody changes, loaded once for all widths and themes that come one after the other."""
    window.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": theme}])
    window.keep(page.as_uri(), width)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
@pytest.mark.parametrize("name", NAMES)
def test_a_report_can_be_read(name: str, width: int, theme: str, pages: dict[str, Path], window: browser.Page) -> None:
    shown(window, pages[name], width, theme)
    assert window.ask("innerWidth") == width
    assert window.ask(FAULTS) == []
    assert window.complaints() == []
    assert [address for address in window.requests() if not address.startswith("file:")] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(
    name: str, width: int, theme: str, pages: dict[str, Path], window: browser.Page, axe: str
) -> None:
    shown(window, pages[name], width, theme)
    if not window.ask("'axe' in window"):
        window.ask(f"{axe}; 0")
    found: list[dict[str, Any]] = window.ask(
        "axe.run({resultTypes: ['violations']}).then((told) => told.violations.map((it) => ({id: it.id, "
        "impact: it.impact, at: it.nodes.slice(0, 3).map((node) => node.html)})))"
    )
    assert [it for it in found if it["impact"] in ("serious", "critical")] == []


def test_it_prints_on_paper(pages: dict[str, Path], window: browser.Page) -> None:
    """In the dark too it prints dark on white, with one picture in each figure."""
    shown(window, pages["clinic"], DESK, "dark")
    window.call(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    colours = window.ask("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    drawn = window.ask("[...document.querySelectorAll('figure > svg')].filter((it) => it.clientHeight > 0).length")
    assert drawn == window.ask("document.querySelectorAll('figure > svg.wide').length")
    paper = window.call("Page.printToPDF")["data"]
    assert len(paper) > 10_000


def test_a_broken_page_is_noticed(tmp_path: Path, window: browser.Page) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><main><p style='width:2000px'>wide</p><figure></figure>"
        "<figure><svg width='50' height='20'><text x='40' y='10'>long text</text></svg></figure></main>"
    )
    shown(window, page, TELEPHONE, "light")
    faults = "\n".join(window.ask(FAULTS))
    assert "the page is 2" in faults
    assert "0 pictures" in faults
    assert "text leaves the picture: long text" in faults
