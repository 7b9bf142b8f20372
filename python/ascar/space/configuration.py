"""Configuration: the values of the active parameters, immutable and hashable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.space.domain import Value


class Configuration(Mapping[str, "Value"]):
    """A value for every active parameter and for no other; a frozen mapping.

    Equal configurations have equal `text` and `key` whatever the order in which their values were given, on
    every machine and in every version.
    """

    __slots__ = ("_hash", "_values")

    _values: dict[str, Value]
    _hash: int | None

    def __init__(self, values: Mapping[str, Value]) -> None:
        object.__setattr__(self, "_values", dict(values))
        object.__setattr__(self, "_hash", None)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a configuration is immutable: {name} cannot be set; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a configuration is immutable: {name} cannot be deleted; make another one")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Configuration):
            return self._values == other._values
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(frozenset(self._values.items())))
        assert self._hash is not None
        return self._hash

    def __reduce__(self) -> tuple[type[Configuration], tuple[dict[str, Value]]]:
        return Configuration, (self._values,)

    def __repr__(self) -> str:
        return f"Configuration({self._values!r})"

    def __str__(self) -> str:
        return " ".join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in self._values.items())

    @property
    def text(self) -> str:
        """Canonical JSON: names sorted, no blanks."""
        return json.dumps(
            self._values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
        )

    def key(self) -> str:
        """A stable digest: the first 16 hexadecimal digits of the SHA-256 of `text`."""
        return hashlib.sha256(self.text.encode("ascii")).hexdigest()[:16]

    def replaced(self, **values: Value) -> Configuration:
        """With other values; unchecked: `Space.validate` tells whether the result is valid."""
        return Configuration({**self._values, **values})
