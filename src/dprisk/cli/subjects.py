"""What is asked about, as the command line names it: a mechanism or a guarantee of the catalogue, or a release file."""

from dprisk.catalogue import Entry
from dprisk.cli.options import Options, flag, only_of_entries, taken
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.release_files import ReleaseFile, read_release
from dprisk.threat.prior import Prior


def chosen(given: Options) -> Entry:
    """The mechanism or guarantee that was named."""
    named: list[Entry] = [given[kind] for kind in ("mechanism", "guarantee") if given[kind] is not None]
    also = ", or a --release file" if "release" in given else ""
    require(len(named) == 1, f"Give either --mechanism or --guarantee{also}.")
    return named[0]


def number_of_records(entry: Entry | None, given: Options) -> int | None:
    """By --size, or by a mechanism that brings its own; None if nothing tells."""
    if entry is not None and entry is given["mechanism"] and entry.records == "nothing" and given["size"] is None:
        return int(entry.make(taken(entry, given), write=flag).size)
    size: int | None = given["size"]
    return size


def subject(entry: Entry, given: Options, prior: Prior) -> Mechanism | Guarantee:
    """The mechanism, or the guarantee for neighbours that differ by replacing a record."""
    require_spacing(entry, prior)
    made: Mechanism | Guarantee = entry.make(taken(entry, given), prior.size, flag)
    return made.to_replace_one() if isinstance(made, Guarantee) else made


def require_spacing(entry: Entry, prior: Prior) -> None:
    """Refuse records at uneven places for a mechanism that takes them to rise in equal steps."""
    if entry.records in ("spaced", "places"):
        prior.require_even_spacing(f"The mechanism {entry.name}")


def planned_release(given: Options) -> ReleaseFile:
    """The release in a file; options that say of a mechanism what the file says of the release are refused."""
    for option in ("mechanism", "guarantee", "size", *sorted(only_of_entries())):
        require(given[option] is None, f"{flag(option)} has no meaning with --release: the file says it.")
    planned = read_release(given["release"])
    require(
        given["prior"] is None or planned.prior is None,
        f"{given['release']} names a prior; leave --prior out, or take it out of the file.",
    )
    return planned
