"""A configuration as Ceph takes it: a file for a monitor without settings, and `ceph config set` for any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.ceph import ceph
from ascar.quoting import ceph_value, comment, shell_line

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.ceph import CephSetting
    from ascar.space import Value

_RESTARTED = {"osd": "restart every OSD, one after the other", "client": "start the clients again"}


def settings_of(configuration: Mapping[str, Value]) -> list[str]:
    """The lines of a file for `ceph config assimilate-conf`, with a section for each kind of daemon."""
    found: list[str] = []
    named = _named(configuration)
    for who in dict.fromkeys(one.who for one, _ in named):
        found.append(f"[{who}]")
        found += [f"{one.name} = {ceph_value(text)}" for one, text in named if one.who == who]
    return found


def forms_of(configuration: Mapping[str, Value], chosen: Collection[str]) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other settings keep the cluster's values."""
    kept = {name: value for name, value in configuration.items() if name in chosen}
    named = _named(kept)
    if not named:
        return {}
    calls = [["config", "set", one.who, one.name, ceph_value(text)] for one, text in named]
    late = dict.fromkeys(one.who for one, _ in named if one.context == "restart")
    told = [
        f"{_RESTARTED[who]}, for "
        + ", ".join(one.name for one, _ in named if one.who == who and one.context == "restart")
        for who in late
    ]
    return {
        "ceph-config": [" ".join(words) for words in calls],
        "shell": [*(shell_line(["ceph", *words]) for words in calls), *(comment(line) for line in told)],
    }


def _named(configuration: Mapping[str, Value]) -> list[tuple[CephSetting, str]]:
    known = {one.parameter_name: one for one in ceph().values()}
    return [(known[name], known[name].text(value)) for name, value in configuration.items()]
