"""Coded tables and the loaders of the two that attacks on marginals are shown on, on small files made up here."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from dprisk.datasets import CodedTable, acs16, sf_fire
from dprisk.errors import InputFileError, ParameterError


def written(
    folder: Path, stem: str, sizes: dict[str, int], rows: str, values: dict[str, list[str]] | None = None
) -> None:
    (folder / f"{stem}-domain.json").write_text(json.dumps({"sizes": sizes, "values": values or {}}))
    (folder / f"{stem}.csv.gz").write_bytes(gzip.compress(rows.encode()))


def test_codes_and_values_are_read(tmp_path: Path) -> None:
    written(tmp_path, "fire_discrete", {"a": 2, "b": 3}, "a,b\n0,2\n1,0\n", {"a": ["no", "yes"]})
    table = sf_fire(tmp_path)
    assert table.names == ("a", "b")
    assert table.values == (("no", "yes"), (0, 1, 2))
    assert table.rows.tolist() == [[0, 2], [1, 0]]
    assert (table.sizes, table.people) == ((2, 3), 2)


def test_only_the_ten_columns_of_the_papers_are_read(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(12)]
    written(tmp_path, "fire_discrete", dict.fromkeys(names, 2), ",".join(names) + "\n" + ",".join("1" * 12) + "\n")
    assert sf_fire(tmp_path).names == tuple(names[:10])


def test_parquet_goes_before_csv(tmp_path: Path) -> None:
    written(tmp_path, "acs16_discrete", {"a": 2, "b": 3}, "a,b\n0,0\n")
    columns = {"a": np.array([1, 0], dtype=np.uint8), "b": np.array([2, 1], dtype=np.uint8)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "acs16_discrete.parquet")
    assert acs16(tmp_path).rows.tolist() == [[1, 2], [0, 1]]
    (tmp_path / "acs16_discrete.parquet").write_text("no parquet")
    with pytest.raises(InputFileError, match="cannot be read as a table with a, b"):
        acs16(tmp_path)


def test_what_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputFileError, match=r"no acs16_discrete-domain\.json.*American Community Survey.*put it there"
    ):
        acs16(tmp_path)
    (tmp_path / "acs16_discrete-domain.json").write_text('{"sizes": {"a": 2}}')
    with pytest.raises(InputFileError, match=r"no acs16_discrete\.csv"):
        acs16(tmp_path)
    (tmp_path / "acs16_discrete.csv").write_text("b\n0\n")
    with pytest.raises(InputFileError, match="has no column a"):
        acs16(tmp_path)
    (tmp_path / "acs16_discrete.csv").write_text("a\nx\n")
    with pytest.raises(InputFileError, match="must hold whole numbers"):
        acs16(tmp_path)
    (tmp_path / "acs16_discrete.csv").write_text("a\n5\n")
    with pytest.raises(ParameterError, match="codes from 5 to 5, but 2 values"):
        acs16(tmp_path)
    (tmp_path / "acs16_discrete-domain.json").write_text("[]")
    with pytest.raises(InputFileError, match="must be JSON with `sizes`"):
        acs16(tmp_path)


def test_any_columns_are_numbered_in_order() -> None:
    table = CodedTable.from_columns({"sex": ["m", "f", "f"], "age": [40, 30, 40]})
    assert table.values == (("f", "m"), (30, 40))
    assert table.rows.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert table.only(["AGE"]).rows.tolist() == [[1], [0], [1]]
    assert repr(table) == "CodedTable(3 people, sex, age)"
    with pytest.raises(ParameterError, match="differ in length"):
        CodedTable.from_columns({"a": [1], "b": [1, 2]})
    with pytest.raises(ParameterError, match="at least one column"):
        CodedTable.from_columns({})


def test_an_empty_cell_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age\nf,30\n,40\n")
    with pytest.raises(InputFileError, match="row 3: `sex` is empty"):
        CodedTable.from_csv(path)
    assert CodedTable.from_csv(path, ["age"]).values == ((30, 40),)
