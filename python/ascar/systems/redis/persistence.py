"""Work that Redis' persistence puts off: a log that grows until it is rewritten, changes without a snapshot.

A log that is never rewritten costs nothing while it grows, and everything when the server has to read it. So
it is held against the rule that was in force before the study (`LogRule`): each begun cycle of that rule is
owed one rewrite. A configuration that rewrites during the load owes the last one, and one that never does
owes all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.systems.redis.counters import number

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_BYTES = "log_bytes"
CHANGES = "unsaved_changes"
BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
"""The fields of INFO that say that a child writes, or is about to."""


@dataclass(frozen=True, slots=True)
class LogRule:
    """When a log is rewritten: once it has grown by a share, and is not small.

    Attributes:
        percent: the share; 0 is never.
        size_min_bytes: the size of a log that is left alone.
    """

    percent: float
    size_min_bytes: float

    def cycle_bytes(self, base_bytes: float) -> float:
        """How much is appended between two rewrites of a log that is rewritten to `base_bytes`."""
        if self.percent <= 0:
            return math.inf
        return max(base_bytes * self.percent / 100, self.size_min_bytes - base_bytes, 1.0)

    def owed(self, pending_bytes: float, base_bytes: float) -> int:
        """The rewrites that pending bytes of a log come to."""
        cycle_bytes = self.cycle_bytes(base_bytes)
        return (
            math.ceil(pending_bytes / cycle_bytes) if math.isfinite(cycle_bytes) else int(pending_bytes > 0)
        )


def deferred_of(fields: Mapping[str, str], save: str) -> dict[str, float]:
    """The amounts of work put off, by INFO's fields and the setting `save`."""
    pending_bytes = number(fields, "aof_current_size") - number(fields, "aof_base_size")
    logs = fields.get("aof_enabled") == "1"
    changes = number(fields, "rdb_changes_since_last_save")
    return {LOG_BYTES: max(0.0, pending_bytes) if logs else 0.0, CHANGES: changes if save.strip() else 0.0}


def snapshot_cycle_s(save: str, changes_per_s: float) -> float:
    """The seconds between snapshots under so many changes a second; 0: none is ever taken."""
    words = save.split()
    pairs = [(float(after), float(count)) for after, count in zip(words[::2], words[1::2], strict=False)]
    if not pairs or changes_per_s <= 0:
        return 0.0
    return min(max(after_s, count / changes_per_s) for after_s, count in pairs)


def cycle_s(
    in_force: Mapping[str, object], before: LogRule, metrics: Mapping[str, float], changes_per_s: float
) -> float:
    """The longer of the times between snapshots and between rewrites of the log, by what the load writes.

    The log cannot grow faster than commands come in. A log that is never rewritten has no cycle of its own:
    that of the rule before the study counts.

    Args:
        in_force: `save`, `appendonly` and the two numbers of the rule, by their names in a study.
        before: the rule in force before the study.
        metrics: those of a trial.
        changes_per_s: the changes a second that a snapshot would save.
    """
    load_s = metrics.get("load_s", 0.0)
    if load_s <= 0:
        return 0.0
    snapshot_s = snapshot_cycle_s(str(in_force["save"]), changes_per_s)
    if not in_force["appendonly"]:
        return snapshot_s
    grown_bytes = metrics.get("redis_input_bytes", 0.0)
    rule = LogRule(
        float(str(in_force["auto_aof_rewrite_percentage"])),
        float(str(in_force["auto_aof_rewrite_min_size"])),
    )
    if rule.percent <= 0:
        rule = before
    cycle_bytes = rule.cycle_bytes(metrics.get("redis_memory_bytes", 0.0))
    if not grown_bytes or math.isinf(cycle_bytes):
        return snapshot_s
    return max(snapshot_s, load_s * cycle_bytes / grown_bytes)
