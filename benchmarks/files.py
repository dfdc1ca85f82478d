"""How fast tables are read, as ratios against the standard library's csv.DictReader in the same run.

    python benchmarks/files.py [--rows 1000000]

1. One column counted as a prior: against a reader of rows as dictionaries that counts while it streams.
2. Three columns counted as a survey.
3. A file without the column that is needed: refused by its header.
"""

import argparse
import csv
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dprisk import Prior, Survey
from dprisk.errors import InputFileError

ILLNESSES = np.array(["HIV", "arthritis", "asthma", "cold", "diabetes", "flu", "hypertension", "migraine"])
BLOCK = 100_000


def written(path: Path, rows: int) -> None:
    """A number, sex, age and illness for each person."""
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        file.write("id,sex,age,illness\n")
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            people = zip(
                range(start, start + count),
                rng.choice(["f", "m"], count),
                rng.integers(18, 90, count),
                rng.choice(ILLNESSES, count),
                strict=True,
            )
            file.writelines(f"{number},{sex},{age},{illness}\n" for number, sex, age, illness in people)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes out, and the processor's seconds: other processes on the machine do not count."""
    start = time.process_time()
    return work(), time.process_time() - start


def streamed(path: Path, *columns: str) -> Counter[Any]:
    with path.open(newline="") as file:
        return Counter(tuple(row[name] for name in columns) for row in csv.DictReader(file))


def refused(path: Path) -> str:
    try:
        Prior.from_csv(path)
    except InputFileError as problem:
        return str(problem)
    raise AssertionError("a file without labels was read")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=1_000_000)
    rows = options.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        written(path, rows)
        print(f"\n{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        prior, mine = timed(lambda: Prior.from_csv(path, "illness"))
        survey, many = timed(lambda: Survey.from_csv(path, "illness", ["sex", "age"]))
        _, early = timed(lambda: refused(path))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        counts, theirs = timed(lambda: streamed(path, "illness"))
        assert prior.to_dict() == Prior.from_counts({name: counts[name,] for name in prior.labels or ()}).to_dict()
        triples, theirs_many = timed(lambda: streamed(path, "sex", "age", "illness"))
        assert sum(triples.values()) == survey.people
    print(f"   one column     {mine:6.2f} s   DictReader {theirs:6.2f} s   ratio {theirs / mine:5.1f} (3 wanted)")
    print(f"   three columns  {many:6.2f} s   DictReader {theirs_many:6.2f} s   ratio {theirs_many / many:5.1f}")
    print(f"   refused        {early * 1e3:6.2f} ms, and {grown:.0f} MB more were held for all three")


if __name__ == "__main__":
    main()
