"""What `ascar init` writes for a kind of system: the keys that most of its studies set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLAIN: Mapping[str, str] = {
    "allow_cost": '#allow_cost = ["dyn-kernel", "dyn-app", "remount"]',
    "weaker": "durability",
    "pinned": "depth = 32",
    "constraint": "depth <= 128",
    "forbidden": "depth = 128, compress = true",
}
"""Examples of the keys of `[space]`, for a system whose space nobody knows yet."""


@dataclass(frozen=True, slots=True)
class Starter:
    """The study file to start from.

    Attributes:
        target: keys of `[target]`, as TOML.
        shown: values of keys of `[target]` that are left out, as TOML, where no default tells one.
        space: examples of the keys of `[space]`: allow_cost, weaker, pinned, constraint, forbidden, and
            preset, where one can be the system's space.
        parameters: tables of parameters, as TOML.
        workload: returns the kind and further keys of `[workload]`, as TOML; None: the system has a load of
            its own, or a default one.
        online: keys of `[target]` of a study for the online loop, where these are other ones.
    """

    target: Mapping[str, str] = field(default_factory=dict[str, str])
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    space: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    parameters: str = ""
    workload: Callable[[], Mapping[str, str]] | None = None
    online: Mapping[str, Any] = field(default_factory=dict[str, "Any"])
