"""Values: what describes a situation says what it is, never changes, and equals whatever says the same.

A mechanism, a guarantee, a threat and its parts are values. Whoever writes a new kind writes a class with an ordinary
`__init__`; the base class does the rest. It remembers the arguments, so that `repr` is the code that makes the value
and `replace` makes it again with other arguments. It compares by content. It closes the value, arrays included, as soon
as `__init__` is done. What is derived later is cached (`functools.cached_property`) and belongs neither to the content
nor to a pickle.

Most mechanisms and guarantees have a number that sets how much noise there is. They are `Adjustable`: they name it, and
there is one way to turn it.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABCMeta
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from dprisk.errors import MechanismError, fail
from dprisk.rounding import significant_down, significant_up

SHORT = 8  # entries up to which a list is written out
LARGE = 1 << 20  # entries beyond which an array is not held twice
TOLD = 1000  # entries up to which a list is told in JSON
LONGEST = 120  # characters of code beyond which a summary says more
SIZES, BUDGETS = ("sigma", "scale", "noise_multiplier"), ("epsilon", "mu", "rho")  # the larger, the more or less noise
PLAIN = frozenset({bool, float, int, str, type(None)})  # what is its own content


class _Maker(ABCMeta):
    """Makes a value: notes what it is made with, and closes it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        signature = _signature(cls)
        bound = signature.bind(*args, **kwargs).arguments.items()
        arguments = {name: given for name, given in bound if not _is(given, signature.parameters[name].default)}
        state = vars(made)
        copies: dict[int, Any] = {}  # of arrays that somebody else may still write to
        for name, held in state.items():
            if isinstance(held, np.ndarray):
                if any(held is given for given in arguments.values()):
                    state[name] = copies[id(held)] = held.copy()
                state[name].flags.writeable = False
        for name, given in arguments.items():
            arguments[name] = copies[id(given)] if id(given) in copies else _kept(given, state.get(name))
        state["_own"] = tuple(state)
        state["_arguments"] = arguments
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """For `help` and editors: the signature of `__init__`, not of `__call__` above."""
        return _signature(cls)


def _is(given: Any, default: Any) -> bool:
    """Whether an argument is the default, as far as plain values tell."""
    return given is default or (isinstance(given, bool | int | float | str) and bool(given == default))


def _kept(given: Any, held: Any) -> Any:
    """An argument as it was given, safe from changes; of a long list what the value itself holds of it."""
    if isinstance(given, np.ndarray):
        return held if isinstance(held, np.ndarray) and given.size > LARGE else given.copy()
    if isinstance(given, list | tuple | range):
        return held if isinstance(held, np.ndarray | tuple) and len(given) > SHORT else copy.deepcopy(given)
    return given.copy() if isinstance(given, dict | set) else given


@cache
def _signature(kind: type[Any]) -> inspect.Signature:
    return inspect.signature(kind.__init__.__get__(object()))


class Value(metaclass=_Maker):
    """Something that is what it was made with."""

    _own: tuple[str, ...]  # the names of what was set by `__init__`
    _arguments: dict[str, Any]
    _put: tuple[str, ...] = ()  # the names of what was put on it after it was made

    def replace(self, **changes: Any) -> Self:
        """The same, made with some other arguments; what was put on it since then, such as labels, stays."""
        takes = _signature(type(self)).parameters
        for name in changes:
            if name not in takes:
                fail(f"{type(self).__name__} is not made with {name!r}; it takes {', '.join(takes) or 'nothing'}.")
        made = type(self)(**{**self._arguments, **changes})
        return made._with({name: vars(self)[name] for name in self._put}) if self._put else made

    def _with(self, state: dict[str, Any]) -> Self:
        """The same but for some of its state."""
        other = object.__new__(type(self))
        vars(other).update(self.__getstate__() | state | {"_put": tuple(dict.fromkeys((*self._put, *state)))})
        return other

    @cached_property
    def _content(self) -> Hashable:
        return type(self), tuple((name, content(vars(self)[name])) for name in self._own)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_arguments" in vars(self):
            raise AttributeError(f"{type(self).__name__} is a value and stays as it is; replace(...) makes another.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __getstate__(self) -> dict[str, Any]:
        kept = (*self._own, *self._put, "_own", "_arguments")
        return {name: vars(self)[name] for name in kept} | {"_put": self._put}

    def __repr__(self) -> str:
        """The code that makes it, unless a part is too long to write; then a summary."""
        return self._code(written)

    def brief(self) -> str:
        """The same for a heading: numbers to six digits, those that set the noise rounded to the safe side."""
        return self._code(_rounded)

    def _code(self, write: Callable[[Any], str]) -> str:
        code = f"{type(self).__name__}({', '.join(named(name, it, write) for name, it in self._told_by.items())})"
        return (self._summary() or code) if "<" in code or len(code) > LONGEST else code

    @property
    def _told_by(self) -> dict[str, Any]:
        """The arguments that it is written with: those that it was made with, unless others tell more."""
        return self._arguments

    def _summary(self) -> str:
        """What it is in a few words; if empty, the code with long parts described in angle brackets."""
        return ""


@dataclass(frozen=True)
class Parameter:
    """A name, the present value, and what happens when it is turned.

    `rises` says whether the risk rises with it (epsilon) or falls (a noise). `jumps` says that a rounded size follows
    from it, so that a smaller value need not have the smaller risk. `wavers` says that the risk may fall again as noise
    gets weaker, as it does where outputs are kept in an interval that only strong noise reaches. `adds_up` says that
    two releases have the sum of theirs, so that a budget is shared among them.
    """

    name: str
    value: float
    rises: bool
    jumps: bool = False
    adds_up: bool = False
    wavers: bool = False

    @classmethod
    def epsilon(cls, value: float, jumps: bool = False, wavers: bool = False) -> Parameter:
        """A privacy parameter: the larger, the weaker the noise."""
        return cls("epsilon", value, rises=True, jumps=jumps, adds_up=True, wavers=wavers)

    @classmethod
    def noise(cls, name: str, value: float, wavers: bool = False) -> Parameter:
        """The size of noise: the larger, the stronger."""
        return cls(name, value, rises=False, wavers=wavers)


class Adjustable(Value):
    """A value with a parameter that can be turned, or none.

    What takes long to build may have `sketches`: functions of the parameter that build cheap stand-ins, roughest first.
    `extrapolate` guesses the parameter sought from theirs. `without_noise` is what is left without any noise, where
    building that is out of reach.
    """

    @property
    def parameter(self) -> Parameter | None:
        """The number that sets how much noise there is; None if it is fixed."""
        return None

    def with_parameter(self, value: float) -> Any:
        """The same kind with another value of its parameter."""
        parameter = self.parameter
        if parameter is None:
            fail(f"{self!r} is fixed as it is: it has no parameter to set.", MechanismError)
        takes = _signature(type(self)).parameters
        if parameter.name not in takes:
            told = f"it is made with {', '.join(takes)}; name the parameter like one of these, or write with_parameter"
            fail(f"{type(self).__name__} has the parameter {parameter.name}, but {told}.", MechanismError)
        return self.replace(**{parameter.name: value})

    def error(self) -> dict[str, float]:
        """The usual measure of what the noise costs, by its name; empty where there is none."""
        return {}

    def ceiling(self, value: float) -> Any:
        """Where the risk wavers: what risks at least as much at a value of the parameter, and less with more noise.

        If that keeps a goal, so does every stronger noise. None if nothing of the kind is known.
        """
        return None

    @property
    def units(self) -> str:
        """What noise and errors are measured in, in words; empty where they have no units."""
        return ""

    @property
    def sketches(self) -> Sequence[Callable[[float], Any]]:
        """None, unless building takes long."""
        return ()

    def extrapolate(self, roots: Sequence[float]) -> float:
        """The last of them."""
        return roots[-1]

    @property
    def without_noise(self) -> Any:
        """None, unless it can be told without building it."""
        return None


def refuse_kind(given: Any) -> None:
    """Refuse a kind of values where one of them is needed, as in assess(GRR, threat)."""
    if isinstance(given, type) and issubclass(given, Value):
        takes = _signature(given).parameters.values()
        needs = [entry.name for entry in takes if entry.default is entry.empty]
        call = ", ".join([*needs, *(["..."] if len(needs) < len(takes) else [])])
        fail(f"{given.__name__} is a kind, not one of them; make one: {given.__name__}({call}).", MechanismError)


def content(value: Any) -> Hashable:
    """What a value is compared by: equal for equal content, whatever holds it. What cannot be told is only itself."""
    if type(value) in PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, Value):
        return value._content
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return "table", tuple((str(name), content(list(value[name]))) for name in value.columns)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            return "array", value.shape, (value.astype(float) + 0.0).tobytes()  # -0.0 is 0.0
        return "array", value.shape, tuple(map(content, value.ravel().tolist()))
    if isinstance(value, Mapping):
        return "mapping", frozenset((key, content(held)) for key, held in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(value if PLAIN.issuperset(map(type, value)) else map(content, value))
    return _foreign(value)


def _foreign(value: Any) -> Hashable:
    """The content of matrices and graphs of other libraries; anything else is itself."""
    if hasattr(value, "tocsr"):
        rows = value.tocsr().sorted_indices()
        return "sparse", rows.shape, *map(content, (rows.indptr, rows.indices, rows.data))
    if hasattr(value, "nodes") and hasattr(value, "edges"):
        parts = (held(data=True) for held in (value.nodes, value.edges))
        return "graph", *(tuple(tuple(map(str, entry)) for entry in part) for part in parts)
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return value  # type: ignore[no-any-return]


def written(value: Any) -> str:
    """A value as code, where it is short; a description in angle brackets otherwise."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float):
        return f"{plain:g}" if float(f"{plain:g}") == plain and abs(plain) < 1e300 else repr(plain)
    if isinstance(plain, np.ndarray):
        if plain.size <= SHORT and plain.ndim <= 2:
            return written(plain.tolist())
        ends = f" from {plain.min():g} to {plain.max():g}" if plain.ndim == 1 and plain.dtype.kind in "iuf" else ""
        return f"<{' x '.join(map(str, plain.shape))} numbers{ends}>"
    if isinstance(plain, list | tuple | Mapping):
        return _written_out(plain) if len(plain) <= SHORT else f"<{len(plain)} entries>"
    text = f"<{plain.__qualname__}>" if hasattr(plain, "__qualname__") else repr(plain)
    return f"<{type(plain).__name__}>" if " at 0x" in text else text


def _written_out(entries: list[Any] | tuple[Any, ...] | Mapping[Any, Any]) -> str:
    if isinstance(entries, Mapping):
        return f"{{{', '.join(f'{key!r}: {written(held)}' for key, held in entries.items())}}}"
    inside = ", ".join(map(written, entries))
    return f"[{inside}]" if isinstance(entries, list) else f"({inside}{',' if len(entries) == 1 else ''})"


def named(name: str, value: Any, write: Callable[[Any], str]) -> str:
    """An argument as code. In a heading more noise is told rather than less: people copy the number."""
    if write is _rounded and isinstance(value, float) and name in (*SIZES, *BUDGETS):
        return f"{name}={significant_up(value) if name in SIZES else significant_down(value, 6)}"
    return f"{name}={write(value)}"


def _rounded(value: Any) -> str:
    if isinstance(value, Value):
        return value.brief()
    return f"{value:.6g}" if isinstance(value, float) else written(value)


def told_of(value: Any) -> Any:
    """An argument for JSON; None stands for a long list."""
    if isinstance(value, Value):
        return value.to_dict() if hasattr(value, "to_dict") else repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist() if value.size <= TOLD else None
    plain = value is None or isinstance(value, bool | int | float | str)
    if isinstance(value, list | tuple):
        return [told_of(entry) for entry in value] if len(value) <= TOLD else None
    return value if plain else repr(value)
