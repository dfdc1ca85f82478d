"""An experiment carried out block by block: the same tally for any number of workers, any executor, any interruption.

Block i draws from a generator seeded by the audit's seed and i alone. Tallies of finished blocks may be recorded in a
file, and are read from there when the audit goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.randomness import block_generator, kept, set_aside
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.choosing import Setup
from dprisk.auditing.evidence.experiment import Experiment
from dprisk.auditing.running.store import Store, identity
from dprisk.auditing.running.workers import Running, run_by_workers
from dprisk.errors import InputFileError, require

BLOCK = 10_000  # runs of a known mechanism in a block
CALLS = 1000  # runs of unknown code in a block at least, and those whose outputs are held at once
MOST_CALLS = 10_000  # the same at most
PARTS = 20  # blocks to share out and to record, unless they would be smaller or larger than that
LOOKS = 100  # runs of unknown code in a block if the audit may end at each
HELD = 1 << 21  # bytes of outputs of a known mechanism that are held at once, few enough to stay in the cache

Watch = Callable[[Any, int], None]  # told of the tally so far, and of the runs planned


@dataclass(frozen=True)
class Plan:
    """What is run: `runs` runs in blocks of `block`, from one seed. Outputs are held for `step` runs at a time."""

    target: Target
    design: Experiment[Any]
    runs: int
    block: int
    seed: int
    step: int

    @classmethod
    def of(cls, setup: Setup, terms: Terms) -> Plan:
        """The plan for an audit. The blocks depend on what is audited and how, not on who runs them."""
        target, design = setup.drawn or (setup.target, setup.design)
        block = block_size(setup.target, terms.runs, terms.stop_early)
        return cls(target, design, terms.runs, block, terms.seed, _step(target, block))

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.runs // self.block)

    def run(self, number: int) -> Any:
        """One block: draw targets, call the code, tally what it gave."""
        count = min(self.block, self.runs - number * self.block)
        rng = block_generator(self.seed, number)
        drawn = self.design.draw(count, rng)
        total = self.design.nothing
        with closing(self.target.stream(self.design.universe[drawn], self.step, rng)) as parts:
            for start, outputs in zip(range(0, count, self.step), parts, strict=False):
                with set_aside() if self.design.may_draw else nullcontext():
                    total = total + self.design.tally(outputs, drawn[start : start + self.step])
        return total

    def tallies(self, running: Running, store: Store | None = None) -> Iterator[Any]:
        """The tallies of the blocks 0, 1, 2, ..., recorded ones from the store, the others as they are run."""
        known = store.blocks(type(self.design.nothing).read) if store else {}
        if store and known and self.target.reproducible:
            first = min(known)
            again = self.run(first)
            require(
                again == known[first] or again.runs != known[first].runs,
                f"{store.path} holds runs of an earlier version of the code, or the code draws random numbers that "
                f"cannot be seeded: block {first} comes out differently now. Start anew with another file.",
                InputFileError,
            )
        missing = [number for number in range(self.blocks) if number not in known]
        here = running.executor is None and running.n_jobs == 1
        fresh = map(self.run, missing) if here else run_by_workers(self.run, missing, running, self.target.name)
        for number in range(self.blocks):
            tally = known[number] if number in known else next(fresh)
            if store and number not in known:
                store.record(number, tally)
            yield tally


def carry_out(setup: Setup, terms: Terms, running: Running, watch: Watch | None) -> tuple[Any, bool]:
    """The tally of all runs, or of those until the claim was refuted, if that ends them, or until Ctrl-C.

    The second tells whether it was Ctrl-C.
    """
    plan, tally = Plan.of(setup, terms), setup.design.nothing
    opened = (
        nullcontext() if running.store is None else closing(Store(running.store, identity(setup, terms, plan.block)))
    )
    try:
        with kept, opened as store:
            for more in plan.tallies(running, store):
                tally = tally + more
                if watch is not None:
                    watch(tally, terms.runs)
                if terms.stop_early and setup.design.refuted(tally, terms.claim, terms.alpha):
                    break
    except KeyboardInterrupt:
        return tally, True
    return tally, False


def block_size(target: Target, runs: int, stop_early: bool) -> int:
    """How many runs a block has: of code that is called more if more are planned, since seeding a block takes time."""
    if target.mechanism is not None:
        return BLOCK
    if stop_early:
        return LOOKS
    return CALLS if target.batch else min(MOST_CALLS, max(CALLS, runs // PARTS))


def _step(target: Target, block: int) -> int:
    """How many runs of a block to make at once: of code that is called some, of a mechanism what fits."""
    if target.mechanism is None:
        return min(block, CALLS)
    return max(1, min(block, HELD // _bytes(target.sample(np.array([0]), np.random.default_rng(0)))))


def _bytes(outputs: Any) -> int:
    """How much memory outputs take, also those in pairs."""
    return sum(map(_bytes, outputs)) if isinstance(outputs, tuple) else np.asarray(outputs).nbytes
