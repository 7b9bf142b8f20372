"""The spaces of Ceph: an expert's, and all settings that bear on speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.ceph import ceph
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.own_server import Given

_CACHE = "bluestore_cache_size"
_RATIOS = ("bluestore_cache_kv_ratio", "bluestore_cache_meta_ratio")
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
    most = {_CACHE: osd_bytes}
    made = (one.up_to(most.get(one.name), today[one.name]).parameter(today[one.name]) for one in chosen)
    space = Space(tuple(made), name="ceph", allow_weaker=tuple(Guarantee))
    share = max(_RATIOS_MAX, sum(float(today[name]) for name in _RATIOS))
    return space.constrain(f"{' + '.join(_RATIOS)} <= {share}")
