"""Loaders of public data sets, on small files made up here."""

import gzip
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dprisk import Prior
from dprisk.datasets import adult, fashion_mnist, mnist
from dprisk.errors import DpriskError, InputFileError


def person(age: object, hours: object, label: str = "<=50K") -> str:
    return f"{age}, ?, 1, HS-grad, 9, Divorced, ?, Unmarried, Other, Female, 0, 0, {hours}, ?, {label}\n"


TRAINING = person(39, 40) + person(50, 13) + "\n"
TEST = "|1x3 Cross validator\n" + person(25, 99, "<=50K.") + "\n"


def test_both_files_are_read_in_order_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(TRAINING)
    (tmp_path / "adult.test.gz").write_bytes(gzip.compress(TEST.encode()))
    assert adult(tmp_path) == {"age": [39, 50, 25], "hours-per-week": [40, 13, 99]}
    assert adult(str(tmp_path), ["adult.data"]) == {"age": [39, 50], "hours-per-week": [40, 13]}


def test_the_columns_make_a_prior(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(TRAINING)
    hours = adult(tmp_path, ["adult.data"])["hours-per-week"]
    assert Prior.from_column(hours, range(101)).support.tolist() == [13, 40]


def test_a_missing_file_is_named_with_its_data_set(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(TRAINING)
    with pytest.raises(
        InputFileError, match=r"There is no adult\.test or adult\.test\.gz in .*Adult \(Census Income\)"
    ):
        adult(tmp_path)
    with pytest.raises(InputFileError, match=r"no adult\.data or adult\.data\.gz in .*nowhere"):
        adult(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TRAINING + "39, Private\n", "line 4 has 2 fields"),
        (person(39, "?"), r"line 1: `hours-per-week` must be a whole number, got '\?'"),
        (person("", 40), "`age` must be a whole number, got ''"),
        (person(-1, 40), "`age` must be a whole number, got '-1'"),
        ("\n", "no people in adult.data"),
    ],
)
def test_what_is_no_adult_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "adult.data").write_text(content)
    with pytest.raises(InputFileError, match=message):
        adult(tmp_path, ["adult.data"])


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    for content in (b"no gzip", gzip.compress(TRAINING.encode())[:-9], gzip.compress(b"\xff")):
        (tmp_path / "adult.data.gz").write_bytes(content)
        with pytest.raises(InputFileError, match="cannot be read as text"):
            adult(tmp_path, ["adult.data"])


def test_one_name_is_not_a_list_of_names(tmp_path: Path) -> None:
    with pytest.raises(DpriskError, match="list of names"):
        adult(tmp_path, "adult.data")


def idx(array: npt.NDArray[np.uint8]) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_images(folder: Path, part: str = "train") -> npt.NDArray[np.uint8]:
    pictures = np.arange(3 * 4 * 4, dtype=np.uint8).reshape(3, 4, 4) * 5
    (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(pictures))
    (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.array([7, 0, 9], dtype=np.uint8))))
    return pictures


def test_pictures_are_read_from_the_folder_or_from_that_of_the_data_set(tmp_path: Path) -> None:
    pictures = write_images(tmp_path)
    inner = tmp_path / "fashion-mnist"
    inner.mkdir()
    write_images(inner, "t10k")
    for found in (mnist(tmp_path), fashion_mnist(tmp_path, "test")):
        np.testing.assert_allclose(found.inputs, pictures / 255, rtol=1e-6)
        assert found.labels.tolist() == [7, 0, 9]
    with pytest.raises(DpriskError, match="part must be 'train' or 'test'"):
        mnist(tmp_path, "all")


def test_what_are_no_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputFileError, match=r"no train-images-idx3-ubyte or .*\.gz in .*part of MNIST.*: put it there"
    ):
        mnist(tmp_path)
    pictures = write_images(tmp_path)
    file = tmp_path / "train-images-idx3-ubyte"
    for content in (b"", idx(pictures)[:-1], idx(pictures.reshape(12, 4)), b"\x00\x00\x0d\x03" + idx(pictures)[4:]):
        file.write_bytes(content)
        with pytest.raises(InputFileError, match="no idx file of bytes in 3 dimensions, or a part of one"):
            mnist(tmp_path)
    file.write_bytes(idx(pictures[:2]))
    with pytest.raises(InputFileError, match="2 pictures and 3 labels"):
        mnist(tmp_path)
    file.unlink()
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"no archive")
    with pytest.raises(InputFileError, match="cannot be read"):
        mnist(tmp_path)
