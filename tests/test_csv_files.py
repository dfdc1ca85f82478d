"""CSV files as people have them: read whatever separates the cells, refused in words that lead to the cell."""

import csv
import gzip
import io
import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import Prior
from dprisk.csv_files import BLOCK, CsvFile, read_csv
from dprisk.errors import DpriskError, InputFileError, PriorError, ThreatError
from dprisk.release_files import read_release
from dprisk.report import make_report
from dprisk.taxonomy import read_threat_model
from tests.test_taxonomy import small

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00\ufeff"), min_size=1, max_size=6).map(str.strip)
NAMES = st.lists(CELL.filter(bool), min_size=2, max_size=4, unique_by=str.casefold)


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@given(data=st.data(), names=NAMES, delimiter=st.sampled_from(",;\t"), ends=st.sampled_from(["\n", "\r\n"]))
def test_any_delimiter_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, names: list[str], delimiter: str, ends: str
) -> None:
    """Against the rows that were written: whatever is in the cells, delimiters and quotes included."""
    rows = data.draw(st.lists(st.lists(CELL.filter(bool), min_size=len(names), max_size=len(names)), min_size=1))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=ends, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    path = written(tmp_path_factory.mktemp("csv") / "file.csv", text.getvalue())
    file = CsvFile.open(path)
    assert (file.delimiter, list(file.header)) == (delimiter, names)
    assert read_csv(path) == {name: [row[place] for row in rows] for place, name in enumerate(names)}
    assert file.counts(names[::-1]) == Counter(tuple(row[::-1]) for row in rows)


@pytest.mark.parametrize(
    "content",
    [
        "label,count\nflu,3\ncold,1\n",
        "label;count\nflu;3\ncold;1\n",
        "label\tcount\nflu\t3\ncold\t1\n",
        "Label,Count\nflu,3\ncold,1\n",
        " LABEL ; COUNT \n flu ; 3 \n cold ; 1 \n",
        b"\xef\xbb\xbfLabel;Count\r\nflu;3\r\n\r\ncold;1\r\n",
        "\n\nlabel,count\nflu,3\n\ncold,1\n\n",
        "Count;Remark;Label\n3;a,b,c;flu\n1;;cold\n",
        "label\tcount\nflu\t3\ncold\t1\n".encode("utf-16"),
        "label;count;remark, if any\nflu;3;\ncold;1;\n",
        "count;a, b, c, d;label\n3;x;flu\n1;y;cold\n",
        "label;count;;\nflu;3;;\ncold;1;;\n",
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_prior_is_read_as_spreadsheets_write_it(tmp_path: Path, content: bytes | str, suffix: str) -> None:
    plain = content.encode() if isinstance(content, str) else content
    path = written(tmp_path / f"prior{suffix}", gzip.compress(plain) if suffix == ".csv.gz" else plain)
    assert Prior.from_csv(path).to_dict() == {"flu": 0.75, "cold": 0.25}


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        ("id;Ill\n1;flu\n", None, "no column `label`; it has `id`, `Ill`, separated by semicolons. Of a file with one"),
        (
            "id|Ill\n1|flu\n",
            None,
            "no column `label`; it has `id|Ill`, separated by vertical bars, which are not read: write",
        ),
        (
            "Patients in 2023\nlabel;count\nflu;1\n",
            None,
            "no delimiter seen (row 2 has more cells: is row 1 the header, or a",
        ),
        (
            "Patients,,\nlabel,count,sex\nflu,1,f\n",
            None,
            "commas (row 2 has more cells: is row 1 the header, or a title?",
        ),
        ("id;Ill\n1;flu\n", "age", "no column `age`; it has `id`, `Ill`, separated by semicolons."),
        ("Age,AGE\n1,2\n", "age", "`age` may be several columns; it has `Age`, `AGE`"),
        ("label\tcount\nflu\t1\ncold\tmany\n", None, "row 3: `count` must be a number, got 'many'; write numbers"),
        ("Label;Count\nflu;1\n\n\ncold;x\n", None, "row 5: `Count` must be a number, got 'x'"),
        ("label;probability\nflu;0,5\ncold;0,5\n", None, "got '0,5'; write numbers with a decimal point."),
        ("label,count\nflu,1\n,2\n", None, "row 3: `label` is empty; give each record a name."),
        ("label,count\nflu,1\ncold,2\nflu,3\n", None, "row 4: `label` 'flu' appears twice"),
        ('label,count\na,"1,234"\nb,3\n', None, "got '1,234'; write numbers without commas between thousands"),
        ("label,probability\na,0.7\nb,-0.3\nc,0.6\n", None, "row 3: `probability` must be a finite number of at"),
        ("label,count\na,nan\nb,1\n", None, "row 2: `count` must be a finite number of at least 0, got nan"),
        ('label,count\n"flu\nor cold",1\ncold\n', None, "row 3 has 1 cell, the header 2 (separated by commas); put"),
        ("id,ill\n1,flu\n2,\n3, \n", "ill", "row 3: `ill` is empty, the first of 2; fill it, for instance with"),
        ("id,ill\n1,flu\n2,\n", "ILL", "row 3: `ill` is empty; fill it"),
        (
            b"label,count\nflu,1\nr\xe9nal,2\n",
            None,
            "line 3 holds the byte 0xe9, 'é' in Latin-1 ('rénal,2')",
        ),
        (b"label,count\nflu,1\nr\xe9nal,2\n", None, "Save it as `CSV UTF-8`, or convert it: iconv -f latin1 -t utf-8 "),
        (b"\xff\xfelabel", None, "begins like UTF-16, but is not"),
        ("", None, "is empty; a header row"),
        ("ill\n", "ill", "has a header row but no records"),
        ("a,b,a\n1,2,3\n", "a", "has two columns `a`"),
    ],
)
def test_an_error_leads_to_the_cell(tmp_path: Path, content: bytes | str, column: str | None, message: str) -> None:
    path = written(tmp_path / "file.csv", content)
    with pytest.raises(InputFileError) as problem:
        Prior.from_csv(path, column)
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('id,ill\n1,flu\n2,"cold\n3,flu\n', "line 3: a quote is opened and not closed"),
        ('id,ill\n1,flu\n2,"cold\n3,flu', "line 3: a quote is opened and not closed"),
        ('id,ill\n1,"flu\nor cold"\n"2,cold\n3,flu\n', "line 4: a quote is opened and not closed"),
        ('id,"ill\n1,flu\n', "line 1: a quote is opened and not closed"),
        ("id,ill\n" + "1,flu\n" * (BLOCK - 1) + '1,"flu\n', f"line {BLOCK + 1}: a quote is opened and not closed"),
        ('id,ill\n1,"flu\n' + "1,flu\n" * 30_000, "is a quote opened on line 2 and not closed?"),
    ],
)
def test_a_quote_that_is_not_closed_is_told_by_its_line(tmp_path: Path, content: str, message: str) -> None:
    """It used to take all that follows for one cell."""
    with pytest.raises(InputFileError) as problem:
        read_csv(written(tmp_path / "file.csv", content))
    assert message in str(problem.value)


def test_rows_are_counted_past_the_first_block(tmp_path: Path) -> None:
    """The number of a row is its place in the file, blank lines included."""
    good = "a,1\n" * (2 * BLOCK + 5)
    path = written(tmp_path / "file.csv", f"label,count\n\n{good}b,oops\n")
    with pytest.raises(InputFileError, match=f"row {2 * BLOCK + 8}: `count` must be a number, got 'oops'"):
        CsvFile.open(path).numbers(CsvFile.open(path).columns(["count"])["count"], "count")
    path = written(tmp_path / "ragged.csv", f"label,count\n{good}b\n")
    with pytest.raises(InputFileError, match=f"row {2 * BLOCK + 7} has 1 cell, the header 2"):
        CsvFile.open(path).counts(["label"])
    assert CsvFile.open(written(tmp_path / "good.csv", f"label,count\n{good}")).counts(["LABEL"]) == {
        ("a",): 2 * BLOCK + 5
    }


def test_a_file_is_refused_by_its_header(tmp_path: Path) -> None:
    """What follows the header is not looked at: here it could not be read."""
    path = written(tmp_path / "file.csv", b"id,ill\n" + b"1,flu\n" * 100_000 + b"2,\xff\n")
    with pytest.raises(InputFileError, match="no column `label`; it has `id`, `ill`, separated by commas"):
        Prior.from_csv(path)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """What is held while a column is counted: a block of rows and the distinct cells."""

    def peak(rows: int) -> int:
        path = written(tmp_path / "file.csv", "id,ill\n" + "".join(f"{row},flu\n" for row in range(rows)))
        tracemalloc.start()
        CsvFile.open(path).counts(["ill"])
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    assert peak(40_000) < 1.5 * peak(4_000)


def test_codes_and_numbers_stay_apart(tmp_path: Path) -> None:
    """A column is numbers only where all of it is, written as Python writes them."""
    assert Prior.from_csv(written(tmp_path / "a.csv", "hours\n9\n10\n9\n"), "hours").to_dict() == {9: 2 / 3, 10: 1 / 3}
    assert Prior.from_csv(written(tmp_path / "b.csv", "zip\n010\n9\n9\n"), "zip").to_dict() == {
        "010": 1 / 3,
        "9": 2 / 3,
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_whole_table_is_no_column(frame: type) -> None:
    table = frame({"ill": ["flu", "flu", "cold"], "sex": ["f", "m", "f"]})
    with pytest.raises(PriorError, match=r"a whole table; a prior is of one column, such as table\['ill'\]"):
        Prior.from_column(table)
    assert Prior.from_column(table["ill"]).to_dict() == {"cold": pytest.approx(1 / 3), "flu": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    "column",
    [pd.Series(["a", None, "b", None]), pl.Series(["a", None, "b", None]), [1.0, float("nan"), 2.0, None]],
)
def test_missing_values_are_named(column: object) -> None:
    with pytest.raises(ThreatError, match=r"missing values \(2 of 4\); drop them, or fill them"):
        Prior.from_column(column)  # type: ignore[arg-type]


def test_every_refusal_is_one_of_ours(tmp_path: Path) -> None:
    for content in (b"\x1f\x8b broken", b'a,b\n"1,2\n'):
        path = written(tmp_path / "file.csv.gz", content)
        with pytest.raises(DpriskError):
            read_csv(path)
    with pytest.raises(InputFileError, match="There is no file"):
        CsvFile.open(tmp_path / "nowhere.csv")
    with pytest.raises(InputFileError, match="is not a file"):
        CsvFile.open(tmp_path)


RELEASE = """
data = "people.csv"
query = {{ kind = "histogram", column = "ill" }}
universe = {universe}
noise = {{ kind = "laplace", epsilon = 1.0 }}
"""


@pytest.mark.parametrize("universe", ['"data"', '{ columns = ["ill"] }', '{ file = "listed.csv" }'])
def test_an_empty_cell_is_no_record_of_a_release_file(universe: str, tmp_path: Path) -> None:
    """It became a record of its own, where `--data` refuses it by its row."""
    plan, data, listed = (tmp_path / name for name in ("plan.toml", "people.csv", "listed.csv"))
    plan.write_text(RELEASE.format(universe=universe))
    data.write_text("ill,sex\nflu,f\n ,m\nHIV,m\n")
    listed.write_text("ill,sex\nflu,f\nHIV,m\n")
    with pytest.raises(
        InputFileError, match=r"people\.csv, row 3: `ill` is empty; fill it, for instance with `unknown`"
    ):
        read_release(plan)
    data.write_text("ill,sex\nflu,f\nHIV,m\nHIV,m\n")
    assert read_release(plan).mechanism.size == 2
    listed.write_text("ill,sex\nflu,f\n,m\n,m\n")
    if "listed" in universe:
        with pytest.raises(InputFileError, match=r"listed\.csv, row 3: `ill` is empty, the first of 2"):
            read_release(plan)


@pytest.mark.parametrize("kind", ["table", "marginals"])
def test_an_empty_cell_is_no_record_of_a_threat_model(kind: str, tmp_path: Path) -> None:
    rows = {"table": "ill,sex\nflu,f\n,m\n", "marginals": "column,value,count\nill,flu,3\nill,,2\n"}[kind]
    (tmp_path / "people.csv").write_text(rows)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small(universe={kind: "people.csv"}, release={"guarantee": "pure", "epsilon": 1.0})))
    with pytest.raises(InputFileError, match=r"people\.csv, row 3: `(ill|value)` is empty; fill it"):
        make_report(read_threat_model(path))
