"""Fingerprints: texts that are the same for the same code and objects in every process, and others for others."""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dprisk.auditing.code.references import Reference
from dprisk.values import Value

DEEPEST = 12  # objects within objects that are looked into
PLAIN = bool | int | float | complex | str | bytes | None
CODE = (Reference, functools.partial, MethodType, FunctionType, type, ModuleType, BuiltinFunctionType)
RANDOM = np.random.Generator | np.random.RandomState | np.random.BitGenerator | random.Random  # another state each time


def fingerprint(value: Any) -> str:
    """A text that is the same for the same content in every process, and another for other content.

    Of functions the text, the closure, defaults, bound arguments, plain globals and the functions of their own package
    that they name count; of objects the class's text
    and the attributes, whatever is cached or draws random numbers left out; of arrays and data frames every entry.
    """
    return _print(value, {}, 0)


def _print(value: Any, known: dict[int, tuple[str, Any]], depth: int) -> str:
    """The fingerprint of a value, given those of objects met before, which are held so that their ids stay theirs."""
    if isinstance(value, PLAIN):
        return repr(value)
    if id(value) in known:
        return known[id(value)][0]
    name = type(value).__qualname__
    if depth == DEEPEST:
        return name
    known[id(value)] = name, value  # where it holds itself
    told = [name, *(_print(part, known, depth + 1) for part in _parts(value))]
    found = hashlib.sha256(repr(told).encode(errors="backslashreplace")).hexdigest()
    known[id(value)] = found, value
    return found


def _parts(value: Any) -> Iterator[Any]:
    """What makes up a value."""
    if isinstance(value, CODE):
        yield from _of_code(value)
    elif isinstance(value, Mapping):
        yield from ([str(key), value[key]] for key in value)
    elif isinstance(value, set | frozenset):
        yield from sorted(map(fingerprint, value))
    elif isinstance(value, list | tuple):
        yield from value
    elif not isinstance(value, RANDOM):
        yield from _of_object(value)


def _of_code(code: Any) -> Iterator[Any]:
    if isinstance(code, Reference):
        yield from (code.text, code.load())
    elif isinstance(code, functools.partial):
        yield from (code.func, code.args, code.keywords)
    elif isinstance(code, MethodType):
        yield from (code.__func__, code.__self__)
    elif isinstance(code, FunctionType):
        yield from (_source(code), code.__defaults__, code.__kwdefaults__)
        yield from map(_content, code.__closure__ or ())
        named = {name: code.__globals__.get(name) for name in code.__code__.co_names}
        root = (code.__module__ or "").split(".")[0]
        yield {name: held for name, held in named.items() if isinstance(held, PLAIN | tuple) or _is_near(held, root)}
    else:
        yield _source(code) if isinstance(code, type) else code.__name__


def _is_near(value: Any, root: str) -> bool:
    """Whether this is a function of the same package, which the code may call."""
    return isinstance(value, FunctionType) and (value.__module__ or "").split(".")[0] == root


def _of_object(value: Any) -> Iterator[Any]:
    if isinstance(value, Value):
        yield vars(value)["_arguments"]
    elif hasattr(value, "__array__"):  # arrays, numbers of numpy, data frames, tensors
        array = np.asarray(value)
        yield from (str(array.dtype), array.shape, [str(name) for name in getattr(value, "columns", ())])
        plain = array.dtype.kind != "O"
        yield hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() if plain else array.ravel().tolist()
    else:
        yield type(value)
        attributes = _attributes(value)
        told = inspect.getattr_static(type(value), "__repr__", None) is not object.__repr__
        yield re.sub(" at 0x[0-9a-f]+", "", repr(value)) if told and not attributes else attributes


def _attributes(value: Any) -> dict[str, Any]:
    """By name, without those that are derived when they are first asked for."""
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    found |= getattr(value, "__dict__", {})
    kind = type(value)
    return {name: held for name, held in found.items() if not (name.startswith("__") or _is_cached(kind, name))}


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), cached_property)


def _source(code: Any) -> str:
    """The text of a function or class, as far as it is written in a file; otherwise its name."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return str(getattr(code, "__qualname__", type(code).__qualname__))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None
