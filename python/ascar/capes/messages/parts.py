"""What comes in parts, put together: a reply, and settings of hundreds of thousands of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Setting = dict[str, Any]
"""Values by key."""


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One object of several: objects and lists of a name go together; of anything else the first counts."""
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            known = whole.setdefault(key, value)
            if known is value:
                continue
            if isinstance(known, dict) and isinstance(value, dict):
                whole[key] = {**cast("Setting", known), **cast("Setting", value)}
            elif isinstance(known, list) and isinstance(value, list):
                whole[key] = [*cast("list[Any]", known), *cast("list[Any]", value)]
    return whole


def add_settings(settings: list[tuple[int, Setting]], entries: object) -> None:
    """Add the entries of a part of stored ticks to the settings before them; what is no entry is passed over.

    An entry is the whole setting from its tick on or, with `"whole": false`, what is other than before: null
    for a key that is gone.

    Args:
        settings: ticks with the setting from then on, in order.
        entries: `settings` of the part.
    """
    for tick, setting, is_whole in _entries(entries):
        if is_whole:
            settings.append((tick, setting))
            continue
        before: tuple[int, Setting] = settings[-1] if settings else (tick - 1, {})
        known = before[1] | setting
        after = tick, {key: value for key, value in known.items() if value is not None}
        if before[0] == tick:
            settings[-1] = after
        else:
            settings.append(after)


def _entries(entries: object) -> Iterable[tuple[int, Setting, bool]]:
    for one in cast("list[object]", entries) if isinstance(entries, list) else []:
        if not isinstance(one, dict):
            continue
        entry = cast("dict[str, Any]", one)
        tick, setting = entry.get("tick"), entry.get("setting")
        if isinstance(tick, int) and isinstance(setting, dict):
            yield tick, cast("Setting", setting), entry.get("whole") is not False
