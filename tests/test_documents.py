"""Files that people write: found lines, bounds, and files that they may name."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk.documents import MOST_BYTES, Keys, read_document, spelled
from dprisk.errors import InputFileError

TOML = """title = "a [bracket] # no comment"   # a comment with [
text = '''
key = 3
'''
[release]
list = [1,
  { inner = 2 }]
dotted.name = 4
[[attacker]]
name = "first"
[[attacker]]
"quoted key" = 'x'
[attacker.more]
deep = { a = { b = 1 } }
"""


def test_every_key_of_a_toml_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(TOML)
    lines = read_document(path).lines
    expected: dict[Keys, int] = {
        ("title",): 1,
        ("text",): 2,
        ("release",): 5,
        ("release", "list"): 6,
        ("release", "list", 1): 7,
        ("release", "list", 1, "inner"): 7,
        ("release", "dotted", "name"): 8,
        ("attacker", 0): 9,
        ("attacker", 0, "name"): 10,
        ("attacker", 1): 11,
        ("attacker", 1, "quoted key"): 12,
        ("attacker", 1, "more", "deep", "a", "b"): 14,
    }
    assert {key: lines[key] for key in expected} == expected
    assert ("key",) not in lines


def paths(value: Any, keys: Keys = ()) -> set[Keys]:
    """The path of everything inside a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: set[Keys] = set()
    for key, held in inside:
        found |= {(*keys, key)} | paths(held, (*keys, key))
    return found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_every_key_of_a_json_file_is_found_on_the_line_it_is_written_on(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    path.write_text(json.dumps(given, indent=1, ensure_ascii=True))
    document = read_document(path)
    assert document.given == given
    text = path.read_text().splitlines()
    assert set(document.lines) == paths(given)
    for keys, line in document.lines.items():
        assert isinstance(keys[-1], int) or json.dumps(keys[-1]) in text[line - 1]


def test_entries_are_counted_from_one_in_words() -> None:
    assert spelled(("attacker", 0, "goal")) == "attacker 1, goal"


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    with path.open("wb") as file:
        file.truncate(100_000_000)  # takes no room on the disk
    with pytest.raises(InputFileError, match=f"100,000,000 bytes, at most {MOST_BYTES:,}"):
        read_document(path)


@pytest.mark.parametrize(("suffix", "text"), [(".toml", "a = " + "[" * 5000), (".json", '{"a":\n' + "[" * 100_000)])
def test_deep_nesting_is_refused_with_its_line(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text(text)
    with pytest.raises(InputFileError, match=r"line \d: brackets are nested more than 20 deep"):
        read_document(path)


def test_brackets_in_text_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'a = "{"[" * 100}" # {"[" * 100}')
    assert read_document(path).given == {"a": "[" * 100}


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret.csv", "link.csv", "inner/../../secret.csv"])
def test_a_file_outside_the_folder_is_refused_whether_it_is_there_or_not(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("label,count\na,1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    path = folder / "x.json"
    path.write_text(json.dumps({"data": name}))
    with pytest.raises(InputFileError, match="line 1: `data` must lie in the folder of this file"):
        read_document(path, [folder]).section().file("data")
    assert read_document(path).section().file("data") == folder / name
