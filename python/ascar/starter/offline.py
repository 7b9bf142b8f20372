"""A study file to start from: every key that there is, with its meaning; what most studies set is set."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ascar.extension import load
from ascar.starter.keys import Key, keys_of, options_of, toml
from ascar.study import (
    GuardSection,
    MeasurementSection,
    RecommendSection,
    StartSection,
    StopSection,
    StudySection,
    VerifySection,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from ascar.systems import System

_WIDTH = 100
_HEAD = """\
# A study: what is tuned, under which load, for what, and within what.
#
#   ascar tune THIS_FILE         search, then verify against the default
#   ascar space THIS_FILE        what will be searched
#
# "# text" explains; "#key = value" is a key that is left out, with its default or an example.
"""
_PRESET = """\
# What may be changed: the target's own space, or a preset (`ascar space PRESET` shows it).
{preset}
"""
_SPACE = """\
# Which changes the search may make, by what they cost (Cao's Table 9.1); left out: all of them.
{allow_cost}
# Values that promise less than the default (durability, consistency, integrity, availability) are left out
# unless named here, as "parameter=value" or as the guarantee.
#allow_weaker = ["{weaker}"]
# Parameters that stay as they are.
#pinned = {{ {pinned} }}
# Formulas over parameters that every configuration must satisfy, and combinations that none may have.
#constraints = ["{constraint}"]
#forbidden = [{{ {forbidden} }}]
"""
# Where no value says what leaving a key out means, an example does.
_EXAMPLES = {
    "study.constraints": '["latency_ms_p99 <= 50"]',
    "measurement.interval_width": "0.1",
    "measurement.readings_min": "30",
    "study.weights": "[2, 1]",
    "start.configurations": "[{ depth = 32 }]",
    "start.study": '"webserver"',
    "start.preferred": "{ depth = [16, 32, 64] }",
    "recommend.margin": "0.03",
    "stop.trials": "100",
    "stop.trials_without_gain": "25",
    "stop.time": '"5 min"',
    "stop.diversity": "{ members_percent = 80, genes_percent = 80, mutations = 9 }",
    "stop.remaining_gain": "{ below = 0.02, confidence = 0.9 }",
    "stop.any": "[{ trials = 100 }]",
    "stop.all": "[{ trials = 30 }, { trials_without_gain = 15 }]",
    "stop.target": '"throughput_ops_per_s >= 40000"',
    "study.budget": '"8 h"',
    "online.session": '"machine"',
    "online.prometheus": '"127.0.0.1:9464"',
    "online.collector": '[{ kind = "block" }, { kind = "vm" }, { kind = "memory" }]',
    "online.average": '[{ of = "block.*.write_latency_ms", half_life_s = 10 }]',
    "online.retention": "{ days = 90, bytes_max = 20000000000 }",
    "online.agent": "{ calendar = true }",
    "online.interface": "{ action_timeout_s = 10 }",
    "online.learner": "{ checkpoint_s = 60 }",
    "guard.floor": '[{ metric = "throughput_bytes_per_s", minimum = 1e6, window_ticks = 30 }]',
    "guard.ceiling": '[{ metric = "latency_ms_p99", maximum = 50, window_ticks = 30 }]',
    "guard.rule": '[{ forbid = "throughput_bytes_per_s < 1e6 and vm_dirty_ratio > 50", why = "it stalls" }]',
    "guard.window": '[{ days = ["sat", "sun"], from = "22:00", to = "06:00" }]',
}
_OF_WORKLOADS = {"filebench": {"wml": '"my-workload.f"', "threads": "16"}}
_WORKLOADS = {
    "filebench": """\
# 16 threads deliver, answer and delete mails of 16 KB, each made durable. On a disk whose cache acknowledges
# flushes at once that measures the processor: then limit the disk (target.iops), or take kind = "fio".
# A load of your own: `ascar workload record` writes one from a process that runs (wml).
"""
}


def study_text(kind: str, *, online: bool = False) -> str:
    """A study file for a kind of target.

    Args:
        kind: the kind.
        online: whether it is for the online loop as well.

    Raises:
        StudyError: no such kind.
        EnvironmentLacks: its package cannot be imported.
    """
    target: type[System] = load("ascar.systems", kind, "TARGET")
    if online:
        target = target.variant(target.starter.online)
    starter = target.starter
    study = {
        "name": toml(kind),
        "objective": '"maximize throughput_ops_per_s"',
        "budget": '"10 min"',
    }
    parts = [
        _HEAD,
        section("study", StudySection, study),
        section("target", options_of(target), {"kind": toml(kind), **starter.target}, shown=starter.shown),
        f"[space]\n{_space(starter.space)}{starter.parameters}",
    ]
    if starter.workload is not None:
        given = starter.workload()
        kind = given["kind"].strip('"')
        workload = load("ascar.workloads", kind, "workload.kind")
        text = section("workload", options_of(workload), given, shown=_OF_WORKLOADS.get(kind))
        parts.append(text.replace("\n", f"\n{_WORKLOADS.get(kind, '')}", 1))
    optimizer = load("ascar.optimizers", "auto", "optimizer.kind")
    parts += [
        section("measurement", MeasurementSection, {}),
        section("optimizer", options_of(optimizer), {"kind": '"auto"'}),
        section("start", StartSection, {}),
        section("stop", StopSection, {}),
        section("verify", VerifySection, {}),
        section("recommend", RecommendSection, {}),
        section("guard", GuardSection, {}, ("pace",)),
    ]
    return "\n".join(parts)


def _space(examples: Mapping[str, str]) -> str:
    preset = _PRESET.format(**examples) if "preset" in examples else ""
    return f"{preset}{_SPACE.format(**examples)}"


def section(
    name: str,
    struct: type[msgspec.Struct] | None,
    given: Mapping[str, str],
    left_out: Sequence[str] = (),
    *,
    shown: Mapping[str, str] | None = None,
) -> str:
    """A table: the given keys set, the others shown with their defaults, each explained.

    Args:
        name: the name of the table; for one of a list in brackets, as `[online.metric]`.
        struct: the struct that reads the table; None if its keys are not known.
        given: keys to set, as TOML.
        left_out: keys that are not shown.
        shown: values of keys that are not set, where they are to be others than the defaults.
    """
    table = name.strip("[]")
    examples = {**_EXAMPLES, **{f"{table}.{key}": value for key, value in (shown or {}).items()}}
    lines = [f"[{name}]"]
    keys = [] if struct is None else keys_of(struct)
    lines += [f"{key} = {value}" for key, value in given.items() if key not in {known.name for known in keys}]
    for key in keys:
        if key.name in left_out:
            continue
        lines += _explained(key)
        if key.name in given:
            lines.append(f"{key.name} = {given[key.name]}")
        else:
            example = examples.get(f"{table}.{key.name}", key.default)
            lines.append(f"#{key.name} = {example or _stand_in(key.kind)}")
    return "\n".join(lines) + "\n"


def _explained(key: Key) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(f"{key.name}: {key.meaning}", _WIDTH)]


def _stand_in(kind: str) -> str:
    """Something of the right type, where there is neither a default nor an example."""
    if kind.startswith("list"):
        return "[]"
    for word, value in (("table", "{}"), ("integer", "1"), ("number", "1.0"), ("true", "false")):
        if kind.startswith(word):
            return value
    return '"..."'
