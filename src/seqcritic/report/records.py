"""Reading of JSON objects, with errors that name the dotted path of what is wrong."""

import math
from collections.abc import Mapping


def finite_or_none(value: object) -> object:
    """Replace every number JSON cannot hold, however deep, by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_none(item) for item in value]
    return value


class Record:
    """A JSON object whose fields are read by type; a fault becomes a ValueError that says where it is."""

    def __init__(self, content: object, path: str) -> None:
        if not isinstance(content, Mapping):
            raise ValueError(f"{path}: expected an object, found {_kind(content)}")
        self._content = content
        self._path = path

    def has(self, key: str) -> bool:
        """Say whether a field that may be absent is there; null stands for its absence."""
        return self._content.get(key) is not None

    def record(self, key: str) -> "Record":
        """Read an object."""
        return Record(self._field(key), f"{self._path}.{key}")

    def text(self, key: str) -> str:
        """Read a string."""
        return _as_text(self._field(key), f"{self._path}.{key}")

    def flag(self, key: str) -> bool:
        """Read true or false."""
        value = self._field(key)
        if not isinstance(value, bool):
            raise ValueError(f"{self._path}.{key}: expected true or false, found {_kind(value)}")
        return value

    def integer(self, key: str) -> int:
        """Read a whole number."""
        value = self._field(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{self._path}.{key}: expected a whole number, found {_kind(value)}")
        return value

    def number(self, key: str) -> float:
        """Read a number; null stands for one that was not finite."""
        return _as_number(self._field(key), f"{self._path}.{key}")

    def optional_number(self, key: str) -> float | None:
        """Read a number that may be absent; null stands for its absence."""
        return None if self._field(key) is None else self.number(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of strings."""
        return tuple(_as_text(item, f"{self._path}.{key}[{i}]") for i, item in enumerate(self._items(key)))

    def numbers(self, key: str) -> tuple[float, ...]:
        """Read a list of numbers."""
        return tuple(_as_number(item, f"{self._path}.{key}[{i}]") for i, item in enumerate(self._items(key)))

    def records(self, key: str) -> tuple["Record", ...]:
        """Read a list of objects."""
        return tuple(Record(item, f"{self._path}.{key}[{i}]") for i, item in enumerate(self._items(key)))

    def text_mapping(self, key: str) -> dict[str, str]:
        """Read an object whose values are strings."""
        inner = Record(self._field(key), f"{self._path}.{key}")
        return {name: inner.text(name) for name in inner._content}

    def _field(self, key: str) -> object:
        if key not in self._content:
            raise ValueError(f"{self._path}.{key}: missing")
        value: object = self._content[key]
        return value

    def _items(self, key: str) -> list[object] | tuple[object, ...]:
        value = self._field(key)
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{self._path}.{key}: expected a list, found {_kind(value)}")
        return value


def _as_text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{path}: expected a string, found {_kind(value)}")
    return value


def _as_number(value: object, path: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{path}: expected a number, found {_kind(value)}")
    return float(value)


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
