"""How the mechanisms of other libraries are called. None of them is imported here before it is used.

- pure-ldp 1.1, 1.2: a client object, or `pure_ldp("OUE", epsilon=1.0, d=4)`;
- multi-freq-ldpy 0.2: `multi_freq_ldpy("OUE", k=4, epsilon=1.0)`;
- OpenDP: a measurement, or `opendp(measurement, records, d_in=1)`;
- diffprivlib 0.6: a mechanism, see `randomisers`.
"""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from dprisk.auditing.code.adapted import MOST_PAIRS, Adapted, span, widest
from dprisk.auditing.code.randomisers import randomiser
from dprisk.errors import TargetError, as_number, fail, require
from dprisk.guarantees import PureDP, from_opendp
from dprisk.types import AnyArray

NEEDS = {
    "diffprivlib": "diffprivlib 0.6 needs scikit-learn below 1.8",
    "pure_ldp": "pure-ldp needs scikit-learn, statsmodels, bitarray, bitstring and xxhash (below 4) beside it",
    "multi_freq_ldpy": "multi-freq-ldpy needs numba and xxhash (below 4) installed beside it",
}
_DISTRIBUTIONS = {"pure_ldp": "pure-ldp", "multi_freq_ldpy": "multi-freq-ldpy"}

# The clients of the protocols, and the options by which those that serve two make the one with an O in its name.
_MULTI_FREQ = {
    **{name: name for name in ("GRR", "SS", "HE", "ADP", "dBitFlipPM")},
    **{name: name for name in ("L_GRR", "L_SUE", "L_OUE", "L_OSUE", "L_SOUE", "L_ADP")},
    **{"SUE": "UE", "OUE": "UE", "BLH": "LH", "OLH": "LH", "L_BLH": "L_LH", "L_OLH": "L_LH"},
    **{"SHE": "HE", "THE": "HE"},  # they differ in what the server does
}
_PURE_LDP = {
    **{"DE": "DEClient", "GRR": "DEClient", "HE": "HEClient"},
    **{"SUE": "UEClient", "OUE": "UEClient", "BLH": "LHClient", "OLH": "LHClient"},
    **{"HM": "HadamardMechClient", "HR": "HadamardResponseClient"},
}
_SELECT = {"UE": "optimal", "LH": "optimal", "L_LH": "optimal", "UEClient": "use_oue", "LHClient": "use_olh"}


def adapt(subject: Any, records: Sequence[Any] | None) -> Adapted | None:
    """Another library's mechanism as one to audit; None if it comes from none that is known here."""
    if isinstance(subject, Adapted):
        return subject
    roots = {kind.__module__.split(".")[0] for kind in type(subject).__mro__}
    if "opendp" in roots and hasattr(subject, "output_measure"):
        return opendp(subject, records)
    if hasattr(subject, "privatise"):
        return _from_pure_ldp(subject, "pure-ldp" if "pure_ldp" in roots else type(subject).__module__.split(".")[0])
    if hasattr(subject, "randomise"):
        return randomiser(subject, records)
    return None


def multi_freq_ldpy(protocol: str, **parameters: Any) -> Adapted:
    """A client of multi-freq-ldpy: GRR, SUE, OUE, SS, BLH, OLH, SHE, THE, ADP, the longitudinal L_*, dBitFlipPM.

    The parameters are those of the library: `k` and `epsilon`, or `k`, `eps_perm` and `eps_1`. What is audited is the
    report as it leaves the device. That of SS is a list whose order may tell more than the set (give `as_target` the
    option `post=sorted` to audit the set). The report of a hashing protocol is a value and the seed of a hash function,
    another in every run: what is looked at are the records that it supports, by the library's own server.
    """
    client, options = _client(protocol, _MULTI_FREQ, "multi-freq-ldpy")
    room = "long_freq_est" if client.startswith(("L_", "dBit")) else "pure_frequency_oracles"
    function = getattr(load_module(f"multi_freq_ldpy.{room}.{client}"), f"{client}_Client")
    given = {**options, **parameters}
    _check_parameters(f"multi-freq-ldpy's {client}_Client", function, given, skip=1)
    # One report of a longitudinal protocol is eps_1-DP, or eps_perm-DP where there is no other.
    epsilon = given.get("epsilon", given.get("eps_1", given.get("eps_perm")))
    call: Callable[[Any], Any] = partial(function, **given)
    if client in ("LH", "L_LH"):
        server = getattr(load_module(f"multi_freq_ldpy.{room}.{client}"), f"{client}_Aggregator_MI")
        call = partial(_supported, call, partial(server, **given))
    return Adapted(
        name=_shown(protocol, parameters),
        library="multi-freq-ldpy",
        call=call,
        records=tuple(range(int(given["k"]))),
        claim=None if epsilon is None else PureDP(float(epsilon)),
    )


def pure_ldp(protocol: str, **parameters: Any) -> Adapted:
    """A client of pure-ldp: DE, SUE, OUE, BLH, OLH, HE, HM, HR, or the name of a client class such as `FastLHClient`.

    The parameters are those of the class, such as `epsilon` and `d`. The reports of BLH and OLH are looked at as the
    sets of records that they support, as with `multi_freq_ldpy`. HM returns an iterator, which the option `post=tuple`
    of `as_target` turns into an output. Worker processes build a client of their own.
    """
    known = protocol.endswith("Client")
    name, options = (protocol, {}) if known else _client(protocol, _PURE_LDP, "pure-ldp")
    module = load_module("pure_ldp.frequency_oracles")
    require(hasattr(module, name), f"pure-ldp has no client {name}.", TargetError)
    given = {**options, **parameters}
    _check_parameters(f"pure-ldp's {name}", getattr(module, name), given, skip=0)
    built = _Built(name, given)
    return replace(_from_pure_ldp(built.client, "pure-ldp"), name=_shown(protocol, parameters), call=built)


def _supported(client: Callable[[Any], Any], server: Callable[[list[Any]], AnyArray], record: Any) -> list[bool]:
    """Which records a report supports: those that a server that got it alone takes to occur."""
    return [bool(share > 0) for share in server([client(record)])]


class _Built:
    """A client of pure-ldp that is built again wherever it is unpickled, and the server of one that hashes."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.name, self.parameters = name, parameters
        module = load_module("pure_ldp.frequency_oracles")
        self.client = getattr(module, name)(**parameters)
        self.server = module.LHServer(**parameters) if name == "LHClient" else None

    def __call__(self, record: Any) -> Any:
        report = self.client.privatise(record)
        if self.server is None:
            return report
        self.server.reset()
        self.server.aggregate(report)
        return [bool(times > 0) for times in self.server.aggregated_data]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Built, (self.name, self.parameters)


def _from_pure_ldp(client: Any, library: str) -> Adapted:
    """A client: `privatise` takes what its index mapper takes, by default 1..d."""
    epsilon, size = getattr(client, "epsilon", None), getattr(client, "d", None)
    return Adapted(
        name=type(client).__name__,
        library=library,
        call=client.privatise,
        records=tuple(range(1, size + 1)) if isinstance(size, int) and _counts_from_one(client, size) else None,
        claim=PureDP(float(epsilon)) if isinstance(epsilon, int | float) else None,
    )


def _counts_from_one(client: Any, size: int) -> bool:
    """Whether the index mapper takes 1..d to 0..d-1. Another one may take anything: then the records must be named."""
    try:
        return bool(client.index_mapper(1) == 0 and client.index_mapper(size) == size - 1)
    except Exception:
        return False


def opendp(measurement: Any, records: Sequence[Any] | None = None, d_in: float | None = None) -> Adapted:
    """A measurement of one value: a number, a truth value, a category, a vector, a whole data set.

    What it claims is its privacy map at `d_in`, by default the largest distance of two of the records where that can
    be computed. Give it where the claim is about neighbours nearer or further apart.
    """
    carrier = str(measurement.input_carrier_type)
    if records is None and carrier == "bool":
        records = (False, True)
    if records is not None and carrier in ("f64", "f32"):
        records = [float(entry) if type(entry) is int else entry for entry in records]
    distance = _distance(str(measurement.input_metric), records) if d_in is None else as_number("d_in", d_in)
    return Adapted(
        name=f"OpenDP measurement on {measurement.input_domain}",
        library="opendp",
        call=measurement,
        records=None if records is None else tuple(records),
        claim=None if distance is None else from_opendp(measurement, _typed(measurement, distance)),
        reproducible=False,
        note="OpenDP draws from the operating system and cannot be seeded.",
    )


def _typed(measurement: Any, distance: float) -> float:
    """A distance of inputs as the type that OpenDP takes for it: a float or a whole number."""
    return float(distance) if str(measurement.input_distance_type) in ("f64", "f32") else int(np.ceil(distance))


def _distance(metric: str, records: Sequence[Any] | None) -> float | None:
    """The largest distance of two records by an input metric of OpenDP, None if it is not known here."""
    if records is None:
        return None
    kind = metric.split("(")[0]
    if kind == "DiscreteDistance":
        return 1
    if kind == "AbsoluteDistance":
        return span(records)
    if kind == "SymmetricDistance" and len(records) ** 2 <= 2 * MOST_PAIRS:
        counted = [Counter(data) for data in records]
        return max(((one - two).total() + (two - one).total() for one, two in combinations(counted, 2)), default=0)
    if kind == "LInfDistance" and "monotonic=true" in metric.lower():
        return None  # whether all entries move one way is for people to say
    norms = {"L1Distance": 1, "L2Distance": 2, "LInfDistance": np.inf}
    return widest(records, lambda step: float(np.linalg.norm(step, norms[kind]))) if kind in norms else None


def load_module(name: str) -> Any:
    """A module of another library, or an error that says what to install."""
    root = name.split(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        lacking = getattr(problem, "name", None) == root
        hint = f"pip install {_DISTRIBUTIONS.get(root, root)}" if lacking else NEEDS.get(root, "see the error above")
        raise TargetError(f"{name} cannot be imported ({problem}): {hint}.") from problem


def _client(protocol: str, table: Mapping[str, str], library: str) -> tuple[str, dict[str, bool]]:
    """The client of a protocol, and the option that selects the protocol."""
    if protocol not in table:
        fail(f"{library} has no protocol {protocol!r} here; there are {', '.join(table)}.", TargetError)
    client = table[protocol]
    return client, {_SELECT[client]: "O" in protocol} if client in _SELECT else {}


def _check_parameters(what: str, function: Callable[..., Any], given: Mapping[str, Any], skip: int) -> None:
    """Refuse unknown and missing parameters before the first run."""
    parameters = dict(list(inspect.signature(function).parameters.items())[skip:])
    unknown = [name for name in given if name not in parameters]
    told = ", ".join(parameters)
    require(not unknown, f"{what} has no parameter {', '.join(unknown)}; it has {told}.", TargetError)
    needed = [name for name, entry in parameters.items() if entry.default is entry.empty and name not in given]
    require(not needed, f"{what} also needs {', '.join(needed)}.", TargetError)


def _shown(protocol: str, parameters: Mapping[str, Any]) -> str:
    return f"{protocol}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"
