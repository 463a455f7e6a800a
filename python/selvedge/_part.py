"""Base of the classes that stand for tables of a scenario, and their text."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from . import _native
from ._errors import ScenarioError


class Part:
    """A table of a scenario. Keys are arguments; dashes of keys are underscores."""

    _path: ClassVar[str] = ""
    _tag: ClassVar[str] = ""
    _keys: ClassVar[dict[str, tuple[str, str]]] = {}
    _values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Make unknown keys fail with the message that a scenario file gets."""
        if "__init__" in cls.__dict__:
            cls.__init__ = _checked(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, **values: Any) -> None:
        """Take the values of keys; None stands for an absent key."""
        self._values = {name: value for name, value in values.items() if value is not None}
        self._check()

    def _check(self) -> None:
        """Check the values as a whole, where that can be done."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key; None if it is absent."""
        if name in type(self)._keys and "_values" in self.__dict__:
            return self._values.get(name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def __repr__(self) -> str:
        """Return the call that makes the part."""
        values = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        """Return whether both have equal keys."""
        return type(self) is type(other) and isinstance(other, Part) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as in a scenario file."""
        of = {name: type(self)._keys[name] for name in self._values}
        return {key: _written(self._values[name], form) for name, (key, form) in of.items()}


def _checked(init: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor with a check of its keys before it."""

    @functools.wraps(init)
    def checked(self: Part, *args: Any, **values: Any) -> None:
        for name in values:
            if name not in type(self)._keys:
                raise unknown_key(type(self), name)
        init(self, *args, **values)

    return checked


def unknown_key(part: type[Part], name: str) -> ScenarioError | TypeError:
    """Return the error for a key that a table does not have."""
    key = name.replace("_", "-")
    path = f"{part._path}.{key}" if part._path else key
    message = _native.key_error(path)
    if message is None:
        return TypeError(f"{part.__name__} has no argument {name!r}")
    # The key stands before the message, as in messages about files.
    return ScenarioError(f"{path}: {message.replace(f'unknown key in {part._path}: ', 'unknown key ', 1)}")


def _written(value: Any, form: str = "") -> Any:
    """Return a value as plain tables, lists, texts and numbers."""
    if form == "kinds" and isinstance(value, (Part, Sequence)) and not isinstance(value, str):
        parts = [value] if isinstance(value, Part) else value
        kinds: dict[str, list[Any]] = {}
        for part in parts:
            if not isinstance(part, Part) or not part._tag:
                raise ScenarioError(f"workload: {part!r} is no kind of traffic; expected one as in Poisson(...)")
            kinds.setdefault(part._tag, []).append(part.to_dict())
        return {tag: tables[0] if len(tables) == 1 else tables for tag, tables in kinds.items()}
    if form == "sizes" and isinstance(value, str) and ":" not in value:
        return f"cdf:{value}"
    if isinstance(value, Part):
        table = value.to_dict()
        return {value._tag: table} if form == "kind" and value._tag else table
    if isinstance(value, Mapping):
        return {str(key): _written(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_written(inner, form if form == "kind" else "") for inner in value]
    return value


def toml(value: Any) -> str:
    """Return a value as TOML in one line.

    Raises:
        ScenarioError: the value is of a type that scenarios do not have.
    """
    value = _written(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {"inf": "inf", "-inf": "-inf", "nan": "nan"}[str(value)]
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    # Numbers of other libraries, such as NumPy's.
    if hasattr(value, "item"):
        return toml(value.item())
    raise ScenarioError(f"{value!r} is of type {type(value).__name__}; scenarios have texts, numbers, lists and tables")


def _key(key: str) -> str:
    is_bare = bool(key) and all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if is_bare else json.dumps(key)


def document(table: Mapping[str, Any]) -> str:
    """Return a scenario file with these keys, one in a line."""
    return "".join(f"{_key(key)} = {toml(value)}\n" for key, value in table.items())
