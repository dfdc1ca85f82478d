"""How the mechanisms of other libraries are called. None of them is imported here before it is used.

- pure-ldp 1.1, 1.2: a client object, or `pure_ldp("OUE", epsilon=1.0, d=4)`;
- multi-freq-ldpy 0.2: `multi_freq_ldpy("OUE", k=4, epsilon=1.0)`;
- OpenDP: a measurement of one value;
- diffprivlib 0.6: a mechanism, by its `randomise`.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dprisk.errors import TargetError, fail, require
from dprisk.guarantees import ApproxDP, Guarantee, PureDP, from_opendp

OneRecord = Callable[[Any], Any]

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


@dataclass(frozen=True)
class Adapted:
    """A mechanism of another library, as a function of one record.

    `for_block(seed)` is that function for a block of runs; by default `call`, which draws from global randomness.
    `records` are the records that the library itself names, `claim` is what it promises of every pair of them, both
    None if it does not say.
    """

    name: str
    library: str
    call: OneRecord
    records: tuple[Any, ...] | None = None
    claim: Guarantee | None = None
    reproducible: bool = True
    note: str = ""

    def for_block(self, seed: int) -> OneRecord:
        """The function of one record to run in a block with this seed."""
        call = self.call
        return call.seeded(seed) if isinstance(call, _Randomise) else call


def adapt(subject: Any, records: Sequence[Any] | None) -> Adapted | None:
    """Another library's mechanism as one to audit; None if it comes from none that is known here."""
    if isinstance(subject, Adapted):
        return subject
    roots = {kind.__module__.split(".")[0] for kind in type(subject).__mro__}
    if "opendp" in roots and hasattr(subject, "output_measure"):
        return _from_opendp(subject, records)
    if hasattr(subject, "privatise"):
        return _from_pure_ldp(subject, "pure-ldp" if "pure_ldp" in roots else type(subject).__module__.split(".")[0])
    if hasattr(subject, "randomise"):
        return _from_diffprivlib(subject, records)
    return None


def multi_freq_ldpy(protocol: str, **parameters: Any) -> Adapted:
    """A client of multi-freq-ldpy: GRR, SUE, OUE, SS, BLH, OLH, SHE, THE, ADP, the longitudinal L_*, dBitFlipPM.

    The parameters are those of the library: `k` and `epsilon`, or `k`, `eps_perm` and `eps_1`. What is audited is the
    report as it leaves the device. That of SS is a list whose order may tell more than the set (give `as_target` the
    option `post=sorted` to audit the set).
    """
    client, options = _client(protocol, _MULTI_FREQ, "multi-freq-ldpy")
    room = "long_freq_est" if client.startswith(("L_", "dBit")) else "pure_frequency_oracles"
    function = getattr(load_module(f"multi_freq_ldpy.{room}.{client}"), f"{client}_Client")
    given = {**options, **parameters}
    _check_parameters(f"multi-freq-ldpy's {client}_Client", function, given, skip=1)
    # One report of a longitudinal protocol is eps_1-DP, or eps_perm-DP where there is no other.
    epsilon = given.get("epsilon", given.get("eps_1", given.get("eps_perm")))
    return Adapted(
        name=_shown(protocol, parameters),
        library="multi-freq-ldpy",
        call=partial(function, **given),
        records=tuple(range(int(given["k"]))),
        claim=None if epsilon is None else PureDP(float(epsilon)),
    )


def pure_ldp(protocol: str, **parameters: Any) -> Adapted:
    """A client of pure-ldp: DE, SUE, OUE, BLH, OLH, HE, HM, HR, or the name of a client class such as `FastLHClient`.

    The parameters are those of the class, such as `epsilon` and `d`. HM returns an iterator, which the option
    `post=tuple` of `as_target` turns into an output. Worker processes build a client of their own.
    """
    known = protocol.endswith("Client")
    name, options = (protocol, {}) if known else _client(protocol, _PURE_LDP, "pure-ldp")
    module = load_module("pure_ldp.frequency_oracles")
    require(hasattr(module, name), f"pure-ldp has no client {name}.", TargetError)
    given = {**options, **parameters}
    _check_parameters(f"pure-ldp's {name}", getattr(module, name), given, skip=0)
    built = _Built(name, given)
    return replace(_from_pure_ldp(built.client, "pure-ldp"), name=_shown(protocol, parameters), call=built)


class _Built:
    """A client of pure-ldp that is built again wherever it is unpickled."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.name, self.parameters = name, parameters
        self.client = getattr(load_module("pure_ldp.frequency_oracles"), name)(**parameters)

    def __call__(self, record: Any) -> Any:
        return self.client.privatise(record)

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


def _from_opendp(measurement: Any, records: Sequence[Any] | None) -> Adapted:
    """A measurement of one value: a number, a truth value, a category, a vector."""
    carrier = str(measurement.input_carrier_type)
    if records is None and carrier == "bool":
        records = (False, True)
    if records is not None and carrier in ("f64", "f32"):
        records = [float(entry) if type(entry) is int else entry for entry in records]
    metric = str(measurement.input_metric)
    distance = _span(records) if metric.startswith("AbsoluteDistance") else None
    if records is not None and metric.startswith("DiscreteDistance"):
        distance = 1
    return Adapted(
        name=f"OpenDP measurement on {measurement.input_domain}",
        library="opendp",
        call=measurement,
        records=None if records is None else tuple(records),
        claim=None if distance is None else from_opendp(measurement, distance),
        reproducible=False,
        note="OpenDP draws from the operating system and cannot be seeded.",
    )


def _span(records: Sequence[Any] | None) -> float | None:
    """How far apart two of the records can be, None if they are no numbers."""
    numeric = records and all(isinstance(entry, int | float) for entry in records)
    return max(records) - min(records) if records and numeric else None


def _from_diffprivlib(mechanism: Any, records: Sequence[Any] | None) -> Adapted:
    """A mechanism with `randomise`.

    One that was given a `random_state` is built anew with another one for each block; one without draws from the
    operating system, as it would in use, and is run as it is.
    """
    call = _Randomise(mechanism)
    return Adapted(
        name=type(mechanism).__name__,
        library="diffprivlib" if type(mechanism).__module__.startswith("diffprivlib") else type(mechanism).__module__,
        call=call,
        claim=_claim_within_sensitivity(mechanism, records),
        reproducible=call.is_seeded,
        note="" if call.is_seeded else "Without a random_state diffprivlib draws from the operating system.",
    )


class _Randomise:
    """`randomise` of a mechanism; a seeded one gets another seed for each block, the other is built anew elsewhere."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism, self.is_seeded = mechanism, getattr(mechanism, "random_state", None) is not None
        if self.is_seeded:
            _constructor_arguments(mechanism)  # refuses one that does not tell

    def seeded(self, seed: int) -> OneRecord:
        """The function for a block, with a random state of this seed if it had one at all."""
        mechanism = self.mechanism
        if self.is_seeded:
            state = np.random.RandomState(np.random.MT19937(seed))  # what diffprivlib takes
            mechanism = type(mechanism)(**_constructor_arguments(mechanism), random_state=state)
        return mechanism.randomise  # type: ignore[no-any-return]

    def __call__(self, record: Any) -> Any:
        return self.mechanism.randomise(record)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"random_state": 0} if self.is_seeded else {}  # replaced in each block
        return _build_randomise, (type(self.mechanism), _constructor_arguments(self.mechanism) | state)


def _build_randomise(kind: type[Any], arguments: dict[str, Any]) -> _Randomise:
    return _Randomise(kind(**arguments))


def _constructor_arguments(mechanism: Any) -> dict[str, Any]:
    """What to call the class with to get the same mechanism: attributes of the names of its parameters."""
    names = [name for name in inspect.signature(type(mechanism)).parameters if name != "random_state"]
    missing = [name for name in names if not hasattr(mechanism, name)]
    if missing:
        told = f"{type(mechanism).__name__} does not tell its {', '.join(missing)}, so that it cannot be built anew"
        fail(f"{told} elsewhere; leave out its random_state and run in one process.", TargetError)
    return {name: getattr(mechanism, name) for name in names}


def _claim_within_sensitivity(mechanism: Any, records: Sequence[Any] | None) -> Guarantee | None:
    """(epsilon, delta) if every two records are as near as the sensitivity says; else the mechanism claims nothing."""
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
    if not isinstance(epsilon, int | float) or not isinstance(delta, int | float) or not math.isfinite(epsilon):
        return None
    sensitivity, span = getattr(mechanism, "sensitivity", None), _span(records)
    if sensitivity is not None and (span is None or span > sensitivity):
        return None
    if sensitivity is None and not hasattr(
        mechanism, "value0"
    ):  # only the binary mechanism has all pairs as neighbours
        return None
    return PureDP(float(epsilon)) if delta == 0 else ApproxDP(float(epsilon), float(delta))


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
