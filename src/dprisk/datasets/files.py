"""Files of public data sets: found in a folder or asked for, compressed or not."""

import gzip
from pathlib import Path

from dprisk.errors import InputFileError, fail


def present(folder: str | Path, file: str, data_set: str) -> Path:
    """The file or its compressed form, or a sentence that says how to get it."""
    for name in (file, f"{file}.gz"):
        if (path := Path(folder) / name).is_file():
            return path
    return fail(f"There is no {file} or {file}.gz in {folder}; it is part of {data_set}: put it there.", InputFileError)


def folder_of(folder: str | Path, own: str) -> Path:
    """The folder of one data set in a folder of several, where there is one; otherwise the folder itself."""
    inner = Path(folder) / own
    return inner if inner.is_dir() else Path(folder)


def lines(path: Path) -> list[str]:
    """The lines of a text file in UTF-8, compressed or not."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return content.decode("utf-8-sig").splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as problem:
        raise InputFileError(f"{path} cannot be read as text in UTF-8: {problem}") from problem


def whole(text: str, name: str, path: Path, line: int) -> int:
    """The whole number that an entry of column `name` must be."""
    entry = text.strip()
    if not (entry.isascii() and entry.isdigit()):
        raise InputFileError(f"{path}, line {line}: `{name}` must be a whole number, got {entry!r}.")
    return int(entry)
