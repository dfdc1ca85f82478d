"""Where `dprisk audit` runs: in local processes, or on a dask cluster."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from dprisk.errors import ParameterError, fail

PATIENCE = "5s"  # for a cluster to answer, and to come back when it was lost


@contextmanager
def workers(address: str | None, jobs: int) -> Iterator[tuple[Executor | None, int]]:
    """The executor of the cluster at an address and its number of threads; without an address no executor, and `jobs`.

    dask is imported for a cluster only. Runs are random, hence not pure: no block is taken from another audit.
    """
    if address is None:
        yield None, jobs
        return
    try:
        from distributed import Client
    except ImportError:
        fail("--cluster needs dask.distributed: install dprisk with the extra `cluster`.")
    try:
        client = Client(address, timeout=PATIENCE)
    except Exception as problem:  # no answer, no address, or an answer of something that is no scheduler
        raise ParameterError(f"No dask cluster answers at {address!r}, as in tcp://host:8786: {problem}.") from problem
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # that it is lost is said in one sentence
    with client:
        yield client.get_executor(pure=False), max(jobs, sum(client.nthreads().values()))
