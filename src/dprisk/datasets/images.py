"""MNIST and Fashion-MNIST: small grey pictures with labels, from their files as published."""

import gzip
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dprisk.datasets.files import folder_of, present
from dprisk.errors import InputFileError, require

PARTS = {"train": "train", "test": "t10k"}
SOURCES = {
    "mnist": "MNIST, LeCun, Cortes and Burges",
    "fashion-mnist": "Fashion-MNIST, Xiao, Rasul and Vollgraf 2017",
}


class Images(NamedTuple):
    """Pictures, one a row, with numbers from 0 (black) to 1; and the label of each."""

    inputs: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]


def mnist(folder: str | Path, part: str = "train") -> Images:
    """Handwritten digits of 28 x 28 points: 60,000 to train, 10,000 in the part "test".

    The folder, or its folder `mnist`, has the files as published, such as `train-images-idx3-ubyte`, perhaps with
    `.gz` after their names.
    """
    return _images(folder, "mnist", part)


def fashion_mnist(folder: str | Path, part: str = "train") -> Images:
    """Clothes in ten kinds, of the same size, number and file names; in the folder or its folder `fashion-mnist`."""
    return _images(folder, "fashion-mnist", part)


def _images(folder: str | Path, name: str, part: str) -> Images:
    require(part in PARTS, f"part must be 'train' or 'test', got {part!r}.")
    own = folder_of(folder, name)
    images, labels = (
        _read(present(own, f"{PARTS[part]}-{kind}-ubyte", SOURCES[name]), dimensions)
        for kind, dimensions in (("images-idx3", 3), ("labels-idx1", 1))
    )
    InputFileError.unless(
        len(images) == len(labels), f"There are {len(images)} pictures and {len(labels)} labels in {own}."
    )
    return Images(images.astype(np.float32) / np.float32(255), labels.astype(np.int64))


def _read(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """An idx file of bytes: two zeros, 8 for bytes, how many dimensions, how large each is, then the bytes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as problem:
        raise InputFileError(f"{path} cannot be read: {problem}") from problem
    begin = 4 + 4 * dimensions
    told = f"{path} is no idx file of bytes in {dimensions} dimensions, or a part of one."
    InputFileError.unless(len(content) >= begin and content[:4] == bytes((0, 0, 8, dimensions)), told)
    shape = struct.unpack(f">{dimensions}I", content[4:begin])
    InputFileError.unless(len(content) - begin == int(np.prod(shape)), told)
    return np.frombuffer(content, dtype=np.uint8, offset=begin).reshape(shape)
