"""The docs as a reader sees them, at a desk and on a telephone: nothing cut off, nothing from the network."""

import fcntl
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests import browser

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
DESK, TELEPHONE = 1280, 390
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "object": "data", "source": "src"}
TAG = re.compile(rf"<(?:{'|'.join(LOADS)})\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>", re.IGNORECASE)

# What is wrong with the page that is shown: a list of sentences.
FAULTS = r"""
(() => {
  const faults = [], page = document.scrollingElement, article = document.querySelector("article");
  const name = (element) => element.tagName + " " + element.className + ": " + element.textContent.trim().slice(0, 60);
  const wide = (element) => element.scrollWidth > element.clientWidth + 1;
  if (wide(page)) faults.push(`the page is ${page.scrollWidth} wide, the window ${page.clientWidth}`);
  for (const element of article.querySelectorAll("*")) {
    const hides = ["hidden", "clip"].includes(getComputedStyle(element).overflowX);
    if (hides && wide(element)) faults.push("cut off, and cannot be scrolled: " + name(element));
  }
  for (const block of article.querySelectorAll(".highlight pre")) {
    if (block.closest(".table")) continue;
    const outside = block.getBoundingClientRect().right > innerWidth + 1;
    if (wide(block) || outside) faults.push("must be scrolled to be read: " + name(block));
  }
  for (const formula of article.querySelectorAll("math")) {
    const box = formula.getBoundingClientRect(), drawn = box.width > 0 && box.height > 0;
    if (!drawn || formula.querySelector("merror")) faults.push("not drawn: " + name(formula));
  }
  for (const formula of article.querySelectorAll("div.math")) {
    if (innerWidth > 1000 && wide(formula)) faults.push("a formula wider than the page: " + name(formula));
  }
  for (const image of article.querySelectorAll("img")) {
    if (!(image.complete && image.naturalWidth > 0)) faults.push("no picture: " + image.src);
    if (image.alt.length < 20) faults.push("no description of the picture: " + image.src);
  }
  const text = article.cloneNode(true);
  for (const code of text.querySelectorAll("pre, code, .sig")) code.remove();
  const raw = text.textContent.match(/\\[()\[\]]|\$\$|\\(frac|sum|le|ge|mathrm|varepsilon|pi)\b/);
  if (raw) faults.push("LaTeX as text: " + raw[0]);
  return faults;
})()
"""


def build(folder: Path) -> None:
    """The pages, in a folder; a warning is an error, such as a broken link or a page in no table of contents.

    Of the reports beside them those that are not made by the tests of reports.
    """
    only = "example_reports=training,hours"
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-D", only, str(DOCS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The built pages: built once, however many workers there are."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder, done = shared / "docs", shared / "docs-built"
    with (shared / "docs-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            build(folder)
            done.touch()
    return folder


class Loaded(HTMLParser):
    """Everything that a browser fetches to show a page; to parse the other tags, too, takes seconds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        for tag in TAG.findall(text):
            self.feed(tag)
            self.clear_cdata_mode()  # what follows the tag of a script is no script here

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        address = dict(attrs).get(LOADS.get(tag, ""))
        if address is not None:
            self.addresses.append(address)


def elsewhere(addresses: list[str]) -> list[str]:
    """Those that need a network."""
    return [address for address in addresses if re.match(r"\w+://|//", address) and not address.startswith("file:")]


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    assert {page.stem for page in (site / "reports").iterdir()} == {"training", "hours"}
    pages = [page for page in site.rglob("*.html") if page.parent.name != "reports"]  # which load nothing at all
    sheets = list(site.rglob("*.css"))
    assert len(pages) > len(PAGES)
    assert sheets
    for page in pages:
        found = Loaded(page.read_text()).addresses
        assert found, page
        assert elsewhere(found) == [], page
    for sheet in sheets:
        assert elsewhere(re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", sheet.read_text())) == [], sheet


def test_what_is_loaded_from_elsewhere_is_found() -> None:
    page = '<script src="https://a.org/x.js"></script><img src="//b.org/y.png"/><img src="z.png"/><a href="https://c.org"></a>'
    assert elsewhere(Loaded(page).addresses) == ["https://a.org/x.js", "//b.org/y.png"]


@pytest.mark.slow
def test_every_formula_is_mathml(site: Path) -> None:
    for name in PAGES:
        source = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / f"{name}.md").read_text(), flags=re.DOTALL)
        formulas = re.findall(r"\$\$.+?\$\$|\$[^$]+\$", source, flags=re.DOTALL)
        assert (site / f"{name}.html").read_text().count("<math ") == len(formulas), name
    assert "<math " in (site / "theory.html").read_text()


@pytest.mark.slow
def test_every_page_is_in_the_sidebar(site: Path) -> None:
    """Sphinx says so too, but a page can tell it not to."""
    sidebar = (site / "index.html").read_text().split('class="sidebar-tree"')[1].split("</aside>")[0]
    linked = set(re.findall(r'href="([\w-]+)\.html"', sidebar))
    assert linked == set(PAGES) - {"index"}


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
@pytest.mark.parametrize("name", [*PAGES, "search", "_modules/dprisk/bounds/papers"])
def test_a_page_can_be_read(name: str, width: int, site: Path, window: browser.Page) -> None:
    """Loaded once for both widths, one after the other."""
    window.keep((site / f"{name}.html").as_uri(), width)
    assert window.ask("innerWidth") == width
    assert window.ask(FAULTS) == []
    assert elsewhere(window.requests()) == []
    assert window.complaints() == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_the_key_sentence_is_seen_without_scrolling_sideways(width: int, site: Path, window: browser.Page) -> None:
    """On the first page, the last line that the command prints."""
    shown = re.findall(r"```console\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)[0]
    sentence = shown.splitlines()[-1]
    window.open((site / "index.html").as_uri(), width)
    found: dict[str, Any] = window.ask("""(() => {
      const last = [...document.querySelector(".console").querySelectorAll("pre")].at(-1);
      const range = document.createRange();
      range.selectNodeContents(last);
      const lines = [...range.getClientRects()];
      return {text: last.innerText.trim(), left: Math.min(...lines.map((line) => line.left)),
              right: Math.max(...lines.map((line) => line.right))};
    })()""")
    assert found["text"].splitlines()[-1] == sentence
    assert 0 < found["left"] < found["right"] < width


@pytest.mark.slow
def test_the_search_finds_a_page(site: Path, window: browser.Page) -> None:
    window.open((site / "search.html").as_uri() + "?q=tolerated", DESK)
    found = window.ask("""new Promise((answer) => {
      const end = Date.now() + 5000;  // results come one by one
      const look = () => {
        const links = document.querySelectorAll("ul.search a");
        const found = [...links].map((link) => link.innerText);
        if (found.includes("Choosing epsilon from a tolerated risk") || Date.now() > end) answer(found);
        else setTimeout(look, 20);
      };
      look();
    })""")
    assert "Choosing epsilon from a tolerated risk" in found
    assert window.complaints() == []


@pytest.mark.slow
def test_code_that_is_copied_from_a_page_is_the_code(site: Path, window: browser.Page) -> None:
    """Lines are elements of their own, for the sake of what wraps; a copy has each line once."""
    written = re.findall(r"```python\n(.*?)```", (DOCS / "extending.md").read_text(), re.DOTALL)[0]
    window.open((site / "extending.html").as_uri(), TELEPHONE)
    copied = window.ask("""(() => {
      getSelection().selectAllChildren(document.querySelector(".highlight-python pre"));
      return getSelection().toString();
    })()""")
    assert "\n\n" in copied
    assert copied.strip() == written.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("pre {white-space: pre !important}", "must be scrolled to be read"),
        (".console pre {white-space: pre !important; overflow: hidden !important}", "cut off, and cannot be scrolled"),
        ("h1 {width: 2000px} * {overflow: visible !important}", "the page is "),
        ("math {display: none !important}", "not drawn"),
    ],
)
def test_a_broken_style_sheet_is_noticed(change: str, fault: str, site: Path, window: browser.Page) -> None:
    page = "theory" if "math" in change else "index"
    window.open((site / f"{page}.html").as_uri(), TELEPHONE)
    window.ask(f"document.head.insertAdjacentHTML('beforeend', {f'<style>{change}</style>'!r})")
    assert any(fault in found for found in window.ask(FAULTS))


@pytest.mark.slow
def test_a_broken_page_is_noticed(tmp_path: Path, window: browser.Page) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        r"<!doctype html><article>\(x\) <img src='https://example.org/x.png'></article><script>nothing()</script>"
    )
    window.open(page.as_uri(), DESK)
    faults = "\n".join(window.ask(FAULTS))
    assert "LaTeX as text" in faults
    assert "no picture" in faults
    assert "no description" in faults
    assert set(elsewhere(window.requests())) == {"https://example.org/x.png"}
    assert "nothing is not defined" in "\n".join(window.complaints())
