"""`[[node]]`: other machines, by the names that the rest of a study calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ascar.errors import StudyError

_NODES_MAX = 1000


def on_node(target: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A `[target]` table with the tables of its nodes (`node`, `nodes`, `servers`) in place of their names.

    Raises:
        StudyError: there is no node of that name, one is named twice, or two nodes have one name.
    """
    by_name = node_tables(nodes)

    def named(key: str, wanted: object) -> dict[str, Any]:
        if not isinstance(wanted, str) or wanted not in by_name:
            there = ", ".join(by_name) or "none; add a [[node]] table"
            raise StudyError(f"{key} = {wanted!r:.80}: must be the name of a [[node]]; there are {there}")
        return dict(by_name[wanted])

    found = dict(target)
    if "node" in target:
        found["node"] = named("target.node", target["node"])
    for key in ("nodes", "servers"):
        # Another package's target may have a key of this name that means something else.
        if key not in target or not (by_name or target.get("kind") == "lustre"):
            continue
        names = target[key]
        if not isinstance(names, list) or not names:
            raise StudyError(f"target.{key} = {names!r:.80}: must be a list of names of [[node]] tables")
        wanted = cast("list[Any]", names)
        twice = [one for at, one in enumerate(wanted) if one in wanted[:at]]
        if twice:
            raise StudyError(f"target.{key}: {twice[0]!r:.80} is there twice; name each node once")
        found[key] = [named(f"target.{key}[{at}]", one) for at, one in enumerate(wanted)]
    return found


def node_tables(nodes: object) -> dict[str, Mapping[str, Any]]:
    """The `[[node]]` tables of a file by their names.

    Raises:
        StudyError: they are no tables, one has no name, or two have the same.
    """
    if not isinstance(nodes, Sequence) or not all(
        isinstance(one, Mapping) for one in cast("Sequence[Any]", nodes)
    ):
        raise StudyError("node: must be tables: write [[node]]")
    tables = cast("Sequence[Mapping[str, Any]]", nodes)
    if len(tables) > _NODES_MAX:
        raise StudyError(f"node: has {len(tables)} tables; at most {_NODES_MAX} are allowed")
    by_name: dict[str, Mapping[str, Any]] = {}
    for at, node in enumerate(tables):
        name = node.get("name", node.get("host"))
        if not isinstance(name, str):
            raise StudyError(f"node[{at}].name: missing; give every node a name")
        if name in by_name:
            raise StudyError(f"node[{at}].name = {name!r:.80}: is another node's; give each its own")
        by_name[name] = node
    return by_name
