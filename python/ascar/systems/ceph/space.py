"""The spaces of Ceph: an expert's, and all settings that bear on speed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.catalogues.ceph import ceph
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.own_server import Given

EXAMPLES = {
    "allow_cost": '#allow_cost = ["dyn-app"]',
    "weaker": "availability",
    "pinned": "osd_enable_op_tracker = true",
    "constraint": "osd_client_message_cap <= 4096",
    "forbidden": "osd_enable_op_tracker = true, osd_client_message_cap = 16",
}
"""What a study file to start from shows of `[space]`."""
CACHE = "bluestore_cache_size"
"""Its greatest value is the memory that an OSD may use."""
_AUTOTUNE = "bluestore_cache_autotune"
_USUAL_CACHES = ("bluestore_cache_size_hdd", "bluestore_cache_size_ssd")
_RATIOS = ("bluestore_cache_kv_ratio", "bluestore_cache_meta_ratio")
_ONODE_RATIO = "bluestore_cache_kv_onode_ratio"
_RATIOS_MAX = 0.96
"""What bluestore_cache_kv_onode_ratio leaves, without which an OSD does not start."""


def ceph_space(parameters: str, given: Mapping[str, Given], osd_bytes: int) -> Space:
    """The settings that a study searches.

    Args:
        parameters: "expert" or "wide".
        given: the values in force before the study, by Ceph's names.
        osd_bytes: the memory that an OSD may use.
    """
    chosen = [one for one in ceph().values() if one.is_searched(parameters)]
    today = {one.name: given.get(one.name, one.default) for one in chosen}
    most = {CACHE: osd_bytes}
    made = (one.up_to(most.get(one.name), today[one.name]).parameter(today[one.name]) for one in chosen)
    return with_bounds(Space(tuple(made), name="ceph", allow_weaker=tuple(Guarantee)), {})


def with_bounds(space: Space, told: Mapping[str, str]) -> Space:
    """With what keeps OSDs starting, and within their memory.

    The shares of the cache are no more than one together. Where the caches are not sized by the memory of the
    OSD (osd_memory_target), and the sizes that the kind of the disk has are above it, a size has to be set.
    What is in force is allowed in any case.

    Args:
        space: the settings of OSDs.
        told: what OSDs say is in force, by Ceph's names; of what is missing, nothing is known.
    """
    default, bounds = space.default(), list[str]()
    if set(_RATIOS) <= set(space.names):
        onode = number_of(told, _ONODE_RATIO)
        most = _RATIOS_MAX if onode is None else 1 - onode
        share = max(most, sum(float(default[name]) for name in _RATIOS))
        bounds.append(f"{' + '.join(_RATIOS)} <= {share}")
    memory_bytes = number_of(told, "osd_memory_target")
    usual_bytes = max(number_of(told, name) or 0 for name in _USUAL_CACHES)
    if memory_bytes is not None and usual_bytes > memory_bytes and {_AUTOTUNE, CACHE} <= set(space.names):
        bound = f"{_AUTOTUNE} or {CACHE} > 0"
        bounds += [bound] if default[_AUTOTUNE] or default[CACHE] else []
    return space.constrain(*bounds) if bounds else space


def number_of(told: Mapping[str, str], name: str) -> float | None:
    """A number that OSDs tell; None: they do not, or not the same."""
    with suppress(KeyError, ValueError):
        return float(told[name])
    return None
