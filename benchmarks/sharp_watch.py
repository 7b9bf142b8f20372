"""Rules that are kept, watched: how soon bad ones are taken off after a change, how often good ones.

    python -m benchmarks.sharp_watch --budget 10min

Rules for random writing (a window of 3) are verified and kept on a simulated cluster. After 300 to 400 s
the load changes: writers leave, readers come, or both, drawn by a seed. A change counts as bad when the
rules lose 2% or more in what comes after it, by 20 pairs of runs of their own. Of 20 bad changes it is
measured when the system did without the rules. Then the load is left alone for 24 hours, on four seeds, and
what is taken back is counted: a *false take-back* is that of rules that were not put back.

Everything is in virtual time, so that nothing depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.sharp import Action, RuleSet, objective_of
from ascar.sharp.contest import AS_IT_IS, contenders_of, contest
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.matching import Choice, RuleWatcher, SimulatedClusterSystem, WatchOptions
from ascar.significance import share
from ascar.simulation import parse_scenario, with_settings

from .harness import Benchmark, Piece, sources, table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.sharp.matching import WatchEvent
    from ascar.simulation import Scenario

CHANGES, DRAWN = 20, 240
CHANGE_S, AFTER_S = (300.0, 400.0), 300.0
SOON_S = 60.0
BAD = -0.02
DAY_S = 86_400.0
DAYS = 4
RULES = RuleSet.uniform(Action(50, 150, 0))
OBJECTIVE = objective_of("throughput")
_LOADS = """
[[workloads]]
name = "write"
filesets = [{ name = "file", size_mib = 2560 }]
[[workloads.threads]]
instances = 64
flowops = [{ op = "write", iosize_kib = 1024, random = true, directio = true }]
[[workloads]]
name = "read"
filesets = [{ name = "file", size_mib = 2560 }]
[[workloads.threads]]
instances = 16
flowops = [{ op = "read", iosize_kib = 1024, random = true, directio = true }]
[[workloads]]
name = "small"
filesets = [{ name = "file", size_mib = 2560 }]
[[workloads.threads]]
instances = 16
flowops = [{ op = "write", iosize_kib = 64, random = true, directio = true }]
"""


def _group(workload: str, count: int, **times_s: float) -> str:
    times = "".join(f"{name} = {value}\n" for name, value in times_s.items())
    return f'[[clients]]\ncount = {count}\nworkload = "{workload}"\n{times}'


@dataclass(frozen=True, slots=True)
class LoadChange:
    """What becomes of five writing clients.

    Attributes:
        at_s: when.
        leave: how many of them leave.
        come: clients that come, by workload.
        noise_percent: standard deviation of the disks' times.
    """

    at_s: float
    leave: int
    come: Mapping[str, int]
    noise_percent: int = 0

    @classmethod
    def drawn(cls, seed: int) -> LoadChange:
        """One of those that there may be."""
        draw = Random(seed)  # no secret
        leave, come = draw.randint(0, 4), {name: draw.randint(0, 4) for name in ("read", "small")}
        some = {name: count for name, count in come.items() if count}
        at_s = draw.uniform(*CHANGE_S)
        return cls(at_s, leave, some, draw.choice((0, 10, 20)))

    @property
    def scripted(self) -> Scenario:
        """The load before and after."""
        groups = [_group("write", self.leave, stop_s=self.at_s)] if self.leave else []
        groups += [_group("write", 5 - self.leave)]
        groups += [_group(name, count, start_s=self.at_s) for name, count in self.come.items()]
        return self._of(groups)

    @property
    def after(self) -> Scenario:
        """What comes after it, alone."""
        groups = [_group("write", 5 - self.leave)]
        groups += [_group(name, count) for name, count in self.come.items()]
        return self._of(groups)

    def _of(self, groups: list[str]) -> Scenario:
        noise = f"[noise]\nservice_sd_percent = {self.noise_percent}\n"
        return parse_scenario("".join(['name = "watched"\n', noise, *groups, _LOADS]))

    @property
    def words(self) -> str:
        """For people."""
        came = [f"{count} {name}" for name, count in self.come.items()]
        said = [f"{self.leave} of 5 leave", *([f"{', '.join(came)} come"] if came else [])]
        return "; ".join([*said, f"noise {self.noise_percent}%"])


class OneRuleSet:
    """A chooser that knows one rule set."""

    def distance(self, a: Mapping[str, float], b: Mapping[str, float]) -> float:  # noqa: ARG002
        """No features tell loads apart: what is found is found by looks and checks alone."""
        return 0.0

    def choose(
        self,
        features: Mapping[str, float],  # noqa: ARG002
        without: Collection[str] = (),
    ) -> Choice | None:
        """The rules, unless they will not do."""
        name = rules_id(RULES)
        if name in without:
            return None
        return Choice(rules=name, rule_set=RULES, gain=0.2, low=0.1, made_for="w", nearest="w", distance=0.0)


def main() -> None:
    """Run, count, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "10min")
    benchmark.build += sources(
        "ascar.sharp.matching.rule_watcher", within=("ascar.sharp", "ascar.pilot.turns")
    )
    changes = [Piece(f"change {seed}", lambda seed=seed: _changed(seed)) for seed in range(DRAWN)]
    days = [Piece(f"day {seed}", lambda seed=seed: _quiet(seed)) for seed in range(DAYS)]
    found = benchmark.run([*changes, *days])
    _print(found)


def _changed(seed: int) -> dict[str, Any]:
    """What the rules are worth after the change, and when the system did without them."""
    change = LoadChange.drawn(seed)
    contenders = contenders_of(change.after, RULES, ())
    gain = contest(contenders, OBJECTIVE, 20, 0.95, threads=2).entries[list(contenders).index(AS_IT_IS)]
    events, _ = _watched(change.scripted, change.at_s + AFTER_S)
    kept = [one.at_s for one in events if one.kind == "verified" and one.at_s < change.at_s]
    off = [one for one in events if one.kind in ("doubted", "changed") and one.at_s >= change.at_s]
    back = [one.at_s for one in events if one.kind == "verified" and one.at_s >= change.at_s]
    return {
        "words": change.words,
        "gain": [gain.gain_relative, gain.gain_low, gain.gain_high],
        "kept_s": kept[-1] if kept else None,
        "off_s": off[0].at_s - change.at_s if off else None,
        "reason": off[0].reason if off else "",
        "back": bool(back),
    }


def _quiet(seed: int) -> dict[str, Any]:
    """What is taken back in a day without any change."""
    steady = with_settings(LoadChange(0.0, 0, {}, noise_percent=10).after, [f"seed={seed + 1}"])
    events, in_force = _watched(steady, DAY_S)
    kinds = [one.kind for one in events]
    first = kinds.index("verified")
    later = kinds[first:]
    return {
        "doubted": later.count("doubted"),
        "taken back": later.count("rolled-back"),
        "checks": later.count("checked"),
        "in force": in_force,
    }


def _watched(scenario: Scenario, until_s: float) -> tuple[list[WatchEvent], bool]:
    system, events = SimulatedClusterSystem(scenario), list["WatchEvent"]()
    chooser: Any = OneRuleSet()
    RuleWatcher(system, chooser, OBJECTIVE, WatchOptions(), listener=events.append).run(until_s)
    return events, system.in_force() is not None


def _print(found: dict[str, Any]) -> None:
    changes = [one for key, one in found.items() if key.startswith("change") and one["kept_s"] is not None]
    lost = {one["words"]: one for one in changes if one["gain"][2] is not None and one["gain"][0] <= BAD}
    bad = list(lost.values())[:CHANGES]  # what is drawn twice counts once
    table(
        ["change", "gain of the rules after it (95%)", "off after s", "why", "put back"],
        [
            [
                one["words"],
                "{:+.1%} ({:+.1%} to {:+.1%})".format(*one["gain"]),
                "never" if one["off_s"] is None else f"{one['off_s']:.0f}",
                one["reason"],
                "yes" if one["back"] else "no",
            ]
            for one in bad
        ],
    )
    soon = sum(one["off_s"] is not None and one["off_s"] <= SOON_S for one in bad)
    if bad:
        least, low, high = share(soon, len(bad))
        took = [one["off_s"] for one in bad if one["off_s"] is not None]
        print(
            f"\n{soon} of {len(bad)} bad changes within {SOON_S:.0f} s, "
            f"{least:.0%} ({low:.0%} to {high:.0%}); ",
            end="",
        )
        print(f"median {np.median(took):.0f} s, greatest {max(took):.0f} s" if took else "")
        wrong = sum(one["back"] for one in bad)
        print(f"rules that were put back although they lose: {wrong} of {len(bad)}")
    good = [one for one in changes if one["gain"][1] is not None and one["gain"][1] > 0]
    lost = sum(one["off_s"] is not None and not one["back"] for one in good)
    print(f"rules that gain after the change, and were taken off for good: {lost} of {len(good)}")
    days = [one for key, one in found.items() if key.startswith("day")]
    for name in ("checks", "doubted", "taken back"):
        print(f"{name} in {len(days)} days without a change: {[one[name] for one in days]}")


if __name__ == "__main__":
    main()
