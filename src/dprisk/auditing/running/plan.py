"""An experiment carried out block by block: the same tally for any number of workers, any executor, any interruption.

Block i draws from a generator seeded by the audit's seed and i alone. Tallies of finished blocks may be recorded in a
file, and are read from there when the audit goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.fingerprints import fingerprint
from dprisk.auditing.code.randomness import block_generator, kept, refresh_elsewhere, set_aside, this_process
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.choosing import Setup
from dprisk.auditing.evidence.experiment import Experiment
from dprisk.auditing.evidence.rules import Past, together
from dprisk.auditing.evidence.views import Seen, joined
from dprisk.auditing.evidence.witness import Witness
from dprisk.auditing.running.identity import what_runs
from dprisk.auditing.running.store import Block, Store
from dprisk.auditing.running.workers import Budget, Running, Workers
from dprisk.errors import InputFileError, TargetError, require
from dprisk.guarantees import ApproxDP
from dprisk.types import IntArray

BLOCK = 10_000  # runs of a known mechanism in a block
CALLS = 1000  # runs of unknown code in a block at least
MOST_CALLS = 10_000  # the same at most
PARTS = 20  # blocks to share out and to record, unless they would be smaller or larger than that
LARGER = 2  # times as many runs in a block of unknown code once nothing is learned any more: judging a block takes time
FEW = 500  # outputs that are held before they become an array: of more Python looks for garbage, which takes longer
LOOKS = 100  # runs of unknown code in a block if the audit may end at each
FIRST = 32  # the share of all blocks after which learners learn for the first time
WHOLE = 3  # the time when they learn everything, if there are so many; it takes long
MANY_RUNS = 30_000  # beyond which learning all of them again, to say what they showed, takes too long
PROBED = 64  # runs by which workers are compared
HELD = 1 << 21  # bytes of outputs of a known mechanism that are held at once, few enough to stay in the cache

Watch = Callable[[Any, int], None]  # told of the tally so far, and of the runs planned


@dataclass(frozen=True)
class Round:
    """So many runs, in blocks of one size but for the last, whose numbers begin with `first`."""

    runs: int
    size: int
    first: int = 0

    @property
    def numbers(self) -> range:
        """Those of the blocks."""
        return range(self.first, self.first - (-self.runs // self.size))

    def count(self, number: int) -> int:
        """The runs of a block."""
        return min(self.size, self.runs - (number - self.first) * self.size)


@dataclass(frozen=True)
class Plan:
    """What is run from one seed, in `rounds` between which the design learns. Outputs are held for `step` runs."""

    target: Target
    design: Experiment[Any]
    rounds: tuple[Round, ...]
    seed: int
    step: int
    home: tuple[str, int] = field(default_factory=this_process)

    @classmethod
    def of(cls, setup: Setup, terms: Terms) -> Plan:
        """The plan for an audit. The blocks depend on what is audited and how, not on who runs them."""
        target, design = setup.drawn or (setup.target, setup.design)
        sizes = block_sizes(setup.target, terms.runs, terms.anytime)
        rounds = tuple(_rounds(terms.runs, *sizes, design.learns))
        return cls(target, design, rounds, terms.seed, _step(target, min(sizes), design.learns))

    def count(self, number: int) -> int:
        """The runs of a block."""
        return next(part.count(number) for part in self.rounds if number in part.numbers)

    def run(self, number: int) -> Block:
        """One block: draw targets, call the code, tally what it gave."""
        refresh_elsewhere(self.home, self.target)
        count = self.count(number)
        rng = block_generator(self.seed, number)
        drawn = self.design.draw(count, rng)
        records = self.design.universe[drawn]
        with closing(self.target.stream(records, self.step, rng)) as parts:
            if self.design.learns:
                past = Past(Seen(joined(list(parts))), records)
                return Block(self._judged(past.seen, drawn), past)
            total = self.design.nothing
            for start, outputs in zip(range(0, count, self.step), parts, strict=False):
                total = total + self._judged(outputs, drawn[start : start + self.step])
        return Block(total)

    def _judged(self, outputs: Any, drawn: IntArray) -> Any:
        with set_aside() if self.design.may_draw else nullcontext():
            return self.design.judged(outputs, drawn) if self.design.learns else self.design.tally(outputs, drawn)

    def finished(self, numbers: range, workers: Workers, store: Store | None = None) -> Iterator[Block]:
        """Some blocks in order, recorded ones from the store, the others as they are run."""
        known = {} if store is None else self._recorded(numbers, store)
        fresh = workers.run(self.run, [number for number in numbers if number not in known])
        for number in numbers:
            block = known[number] if number in known else next(fresh)
            if store and number not in known:
                store.record(number, block)
            yield block

    def _recorded(self, numbers: range, store: Store) -> dict[int, Block]:
        """Recorded blocks, each with as many runs as it should have."""
        known = store.blocks(numbers, type(self.design.nothing).read)
        for number, block in known.items():
            planned, runs = self.count(number), block.tally.runs
            learned = runs if block.past is None else block.past.records.size
            require(
                runs == learned == planned and (block.past is not None or not self.design.learns),
                f"{store.path} holds {runs} runs of block {number}, which has {planned}: the file was changed, or is "
                "damaged. Start anew with another file.",
                InputFileError,
            )
        return known

    def probe(self, number: int) -> Any:
        """The outputs of a few runs from one seed."""
        refresh_elsewhere(self.home, self.target)
        return self.target.sample(self.design.universe[np.arange(PROBED) % self.design.size], np.random.default_rng(0))

    def require_own_noise(self, workers: Workers) -> None:
        """Refuse to share out code whose workers would begin with the same noise.

        That is so if it was drawn before, in calls of this process, or when what is called was made.
        """
        target = self.target
        if target.mechanism is not None:
            return
        before = fingerprint(what_runs(target))
        self.probe(0)
        require(
            not target.in_advance and (target.reproducible or fingerprint(what_runs(target)) == before),
            f"{target.name} keeps something between calls, perhaps noise drawn in advance, and each worker would begin "
            "with the same. Run it with n_jobs=1, or audit a function that makes a fresh object in each run.",
            TargetError,
        )
        if not target.reproducible:
            workers.require_own_noise(self.probe)

    def require_same(self, store: Store) -> None:
        """Refuse a file whose first block comes out differently now, where the same seed should give the same runs."""
        if not self.target.reproducible:
            return
        for number, known in self._recorded(range(1), store).items():
            require(
                self.run(number).tally == known.tally,
                f"{store.path} holds runs of an earlier version of the code, or the code draws random numbers that "
                f"cannot be seeded: block {number} comes out differently now. Start anew with another file.",
                InputFileError,
            )


def carry_out(
    setup: Setup, terms: Terms, running: Running, store: Store | None, watch: Watch | None, budget: Budget
) -> Outcome:
    """The tally of all runs, or of those until the claim was refuted, if that ends them, the time is up, or Ctrl-C.

    An experiment that learns is told of all finished blocks from time to time (`_rounds`), which does not depend on who
    runs them.
    """
    plan, found = Plan.of(setup, terms), Outcome(setup.design.nothing, setup.design, setup.past)
    workers = Workers(running, plan.target.name)
    try:
        with kept, workers, budget.kept():
            if not workers.are_here:
                plan.require_own_noise(workers)
            for turn, part in enumerate(plan.rounds):
                if turn > 0:
                    found = found.learned(whole=turn == min(WHOLE, len(plan.rounds) - 1))
                    plan = replace(plan, design=found.design)
                elif store is not None:
                    plan.require_same(store)
                for block in plan.finished(part.numbers, workers, store):
                    found = replace(
                        found,
                        tally=found.tally + block.tally,
                        recent=(*found.recent, block.past),
                        deaths=workers.deaths,
                    )
                    if watch is not None:
                        watch(found.tally, terms.runs)
                    if terms.stop_early and setup.design.refuted(found.tally, terms.claim, terms.alpha):
                        return found
                    if budget.is_over:
                        return found
    except KeyboardInterrupt:
        return replace(found, interrupted=not budget.is_over)
    return found


@dataclass(frozen=True)
class Outcome:
    """What the runs gave: their tally, the experiment with all that it learned, and what it learned from.

    `recent` are blocks that it has not learned from yet.
    """

    tally: Any
    design: Experiment[Any]
    past: Past | None
    recent: tuple[Past | None, ...] = ()
    rounds: tuple[int, ...] = ()  # runs between which it learned
    interrupted: bool = False
    deaths: int = 0  # of workers, whose blocks were run again

    def learned(self, whole: bool) -> Outcome:
        """The same after learning from all blocks: everything, or what is quick to learn."""
        if not (self.design.learns and self.recent):
            return self
        past = together([self.past, *self.recent])
        design = self.design.after(past) if whole else self.design.reminded(past)
        return replace(self, design=design, past=past, recent=(), rounds=self.all_rounds)

    def witnesses(self, claim: ApproxDP, alpha: float) -> tuple[Witness, ...]:
        """What gave the code away, as all runs teach it; of many runs as it was known at last, if that shows it."""
        if self.design.learns and self.tally.runs > MANY_RUNS:
            past = together([self.past, *self.recent])
            if known := self.design.witnesses(self.tally, claim, alpha, past):
                return known
        learned = self.learned(whole=True)
        return learned.design.witnesses(self.tally, claim, alpha, learned.past)

    @property
    def all_rounds(self) -> tuple[int, ...]:
        """With the last one, after which nothing was learned."""
        fresh = sum(block.records.size for block in self.recent if block is not None)
        return (*self.rounds, fresh) if fresh else self.rounds

    @property
    def records(self) -> IntArray:
        """The record of each run that was learned from, or might have been."""
        return np.concatenate([np.zeros(0, np.int64), *(part.records for part in (self.past, *self.recent) if part)])


def _rounds(runs: int, block: int, larger: int, learns: bool) -> Iterator[Round]:
    """Runs between which an experiment learns: each time from twice as many, at first from few.

    Not once more than a third are done: that takes the longest, and few runs have anything of it. The blocks after that
    are the larger ones.
    """
    start, blocks = 0, -(-runs // block)
    last = -(-blocks // FIRST)
    while learns and 3 * last <= blocks:
        yield Round((last - start) * block, block, start)
        start, last = last, 2 * last
    yield Round(runs - start * block, larger, start)


def block_sizes(target: Target, runs: int, anytime: bool) -> tuple[int, int]:
    """How many runs a block has, and one of the last round.

    Of code that is called more if more are planned, since seeding a block takes time.
    """
    if target.mechanism is not None:
        return BLOCK, BLOCK
    if anytime:
        return LOOKS, LOOKS
    block = CALLS if target.batch else min(MOST_CALLS, max(CALLS, runs // PARTS))
    return block, LARGER * block if block > CALLS else block


def _step(target: Target, block: int, joined_again: bool) -> int:
    """How many runs of a block to make at once: of code that is called some, of a mechanism what fits."""
    if target.mechanism is None:
        return min(block, FEW if joined_again else CALLS)
    return max(1, min(block, HELD // _bytes(target.sample(np.array([0]), np.random.default_rng(0)))))


def _bytes(outputs: Any) -> int:
    """How much memory outputs take, also those in pairs."""
    return sum(map(_bytes, outputs)) if isinstance(outputs, tuple) else np.asarray(outputs).nbytes
