"""The command `dprisk plot`: risks over a parameter, over distances and over priors, as a picture or as a table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from dprisk.catalogue import GUARANTEES, MECHANISMS, PRIORS, Catalogue, Entry
from dprisk.catalogue.naming import prior_names, records_of
from dprisk.cli.options import (
    FILE,
    Command,
    Options,
    echoed,
    flag,
    of_entries,
    of_the_attacker,
    only_of_entries,
    option,
)
from dprisk.cli.subjects import adjustable, planned_release, read_threat, release_threat
from dprisk.cli.sweeping import INTERRUPTED, show_sweep, swept, take_ranges, with_ranges
from dprisk.errors import fail, require
from dprisk.pictures import ready, write
from dprisk.sweeps import Sweep
from dprisk.threat import Threat

POINTS = 41
SEVERAL = "give the option again for another one, to see them side by side."


def plot_command() -> Command:
    """`dprisk plot`, with the names that the catalogue has now."""
    registers = (MECHANISMS, GUARANTEES)
    sections = of_entries(*registers)
    for register, heading in zip(registers, list(sections), strict=True):
        choice = _names_in(register, f"One of the names below; {SEVERAL}")
        sections[heading] = [choice, *sections[heading][1:]]
    attacker = [it for it in of_the_attacker() if it.name != "prior"]
    prior = option("prior", str, f"{prior_names()}; {SEVERAL}", metavar="PRIOR", multiple=True, show_default="uniform")
    release = option("release", FILE, "Instead of a mechanism: a release file, as for `dprisk assess`.")
    answer: list[click.Parameter] = [
        option("out", FILE, "The picture to write, by its ending: .svg or .png."),
        option("of", click.Choice(("advantage", "success")), "What to draw; the advantage if left out."),
        option("bounds", bool, "Beside each mechanism, also what its guarantee alone promises."),
        option("runs", int, "Runs of an estimate, where the exact value is out of reach."),
        option("seed", int, "Seed of those runs; 0 if left out."),
        option("json", bool, "Print the numbers as JSON."),
        option("csv", bool, "Print the numbers as CSV."),
    ]
    sections |= {"Or a release in a file": [release], "Records and attacker": [prior, *attacker], "Answer": answer}
    examples = (
        "--mechanism grr --mechanism oue --epsilon 0.1..8 --size 100 --out risk.svg",
        "--mechanism laplace --epsilon 1 --prior adult-hours.csv --within 0..20 --out distances.png",
    )
    return Command("plot", _plot, with_ranges(sections, POINTS), registers, examples)


def _names_in(register: Catalogue, meaning: str) -> click.Option:
    """An option that may be given several times, or once with commas; becomes the entries by what they were called."""

    def found(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, Entry]:
        names = [name for text in texts for name in ([text] if text in register else text.split(","))]
        return {name.strip(): register[name.strip()] for name in names}

    return option(register.kind, str, meaning, metavar="NAME", multiple=True, callback=found)


def _plot(**given: Any) -> None:
    """What does it risk, over a range of noise, distances or priors?

    Several numbers (0.1,0.5,1) or a range (0.1..5, or 0.1..5:20 for 20 points) for the parameter or for --within become
    curves; so do several mechanisms, guarantees or priors.
    """
    out, as_text = given["out"], not (given["json"] or given["csv"])
    require(out or not as_text, "Say where to: --out risk.svg (or .png), or --json or --csv.")
    if out is not None:
        ready(out)
    ranges = take_ranges(given)
    subject, threats = _of_release(given) if given["release"] is not None else _of_entries(given, ranges)
    found, interrupted = _sweep(subject, threats, ranges, given)
    if out is not None:
        write(found.picture(given["of"] or "advantage"), out)
        click.echo(f"{found.sentence()}\nWritten to {out}.", err=not as_text)
    if not as_text:
        named = {kind: list(given[kind]) or None for kind in ("mechanism", "guarantee", "prior")}
        show_sweep(found, given, echoed(given | named, next(iter(threats.values())).prior.size), ranges)
    click.get_current_context().exit(INTERRUPTED if interrupted else 0)


def _sweep(subject: Any, threats: dict[str, Threat], ranges: Options, given: Options) -> tuple[Sweep, bool]:
    """What `swept` finds; the first threat is the one whose prior is replaced."""
    priors = {name: threat.prior for name, threat in threats.items()} if len(threats) > 1 else None
    varied = ranges or priors or isinstance(subject, dict)
    require(varied, "Give something to compare: a range, as in --epsilon 0.1..5, or several of --mechanism or --prior.")
    asked = ranges | {name: given[name] for name in ("bounds", "runs", "seed")}
    return swept(subject, next(iter(threats.values())), prior=priors, **asked)


def _of_entries(given: Options, ranges: dict[str, tuple[float, ...]]) -> tuple[Any, dict[str, Threat]]:
    """Mechanisms and guarantees of the catalogue, and the threat under each prior."""
    entries: dict[str, Entry] = {**given["mechanism"], **given["guarantee"]}
    require(len(entries) > 0, "Give --mechanism or --guarantee, or a --release file.")
    for name in only_of_entries():
        taken = given[name] is None or any(name in entry.takes for entry in entries.values())
        require(taken, f"{flag(name)} has no meaning for {' and '.join(entries)}.")
    subjects: dict[str, Any] = {}
    threats: dict[str, Threat] = {}
    for called, entry in entries.items():
        own = given | {"mechanism": None, "guarantee": None}
        own["mechanism" if called in given["mechanism"] else "guarantee"] = entry
        threats = _by_prior(own, lambda now, entry=entry: read_threat(now, entry))  # type: ignore[misc]
        options = {name: given[name] for name in entry.takes if given[name] is not None}
        subjects[called] = adjustable(entry, options, ranges, records_of(next(iter(threats.values())).prior, entry))
    return subjects if len(subjects) > 1 else next(iter(subjects.values())), threats


def _of_release(given: Options) -> tuple[Any, dict[str, Threat]]:
    """The release in a file, and the threat under each prior."""
    require(not given["mechanism"] and not given["guarantee"], "Give --mechanism or --guarantee, or a --release file.")
    own = given | {"mechanism": None, "guarantee": None, "prior": given["prior"] or None}
    planned = planned_release(own)
    return planned.mechanism, _by_prior(given, lambda now: release_threat(now, planned))


def _by_prior(given: Options, read: Callable[[Options], Threat]) -> dict[str, Threat]:
    """The threat under each prior, by its name; a file, which says how many records there are, comes first."""
    found: dict[str, Threat] = {}
    size = given["size"]
    for text in sorted(given["prior"] or (None,), key=_is_name):
        threat = read(given | {"prior": text, "size": size})
        name = text or ("uniform" if given["release"] is None else "data")
        if not _is_name(name) and Path(name).name not in found:
            name = Path(name).name
        if name in found:
            fail(f"--prior {name} is given twice.")
        found[name] = threat
        if given["release"] is None and isinstance(threat.prior.size, int):
            size = threat.prior.size
    return found


def _is_name(text: str | None) -> bool:
    return text is None or text.partition(":")[0] in PRIORS
