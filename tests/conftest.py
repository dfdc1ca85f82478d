"""Settings for all tests: the same cases on every machine, no deadline, one thread a worker; and a browser."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import browser

for library in ("OMP", "OPENBLAS", "MKL"):  # threads that wait for each other busily, beside workers on every core
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
gc.set_threshold(100_000, 20, 50)  # what is collected is many small objects, hardly any of them garbage
settings.register_profile("dprisk", deadline=None, derandomize=True, max_examples=80)
settings.load_profile("dprisk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The pages of the docs are slow: most run for seconds, and their examples are whole audits and trainings."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker("slow")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    """A browser without a network."""
    if browser.PROGRAM is None:
        pytest.skip("needs Chromium to look at the pages (apt-get install chromium)")
    with browser.chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page
