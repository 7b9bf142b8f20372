"""A family of scenarios: random sizes, loads and disturbances, the same for the same number.

The generator is fixed before rules are searched over it, so that nothing is chosen by what they gain. 12
members are for training, 50 others for the test; every third one is steady: its load does not change, and
nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from ascar.simulation import parse_scenario

if TYPE_CHECKING:
    from ascar.simulation import Scenario

WARMUP_S, DURATION_S = 2.0, 20.0
KINDS = ("come-and-go", "phases", "tenants", "slow-server")
"""Of the members that are not steady."""
_LOADS = {
    "random-write": ("write", 1024, True, True, 64),
    "random-read": ("read", 1024, True, True, 32),
    "small-write": ("write", 64, True, True, 32),
    "small-read": ("read", 64, True, True, 16),
    "sequential-write": ("write", 1024, False, False, 4),
    "sequential-read": ("read", 1024, False, False, 4),
}
"""Operation, KiB, at random, past the cache, threads."""


@dataclass(frozen=True, slots=True)
class Member:
    """A scenario of the family.

    Attributes:
        number: what it is drawn by.
        kind: "steady", or one of `KINDS`.
        scenario: the scenario.
    """

    number: int
    kind: str
    scenario: Scenario

    @property
    def name(self) -> str:
        """Its kind and number."""
        return f"{self.kind} {self.number}"

    @property
    def steady(self) -> bool:
        """Whether nothing changes in it."""
        return self.kind == "steady"


def member(number: int) -> Member:
    """The member of a number."""
    draw = Random(number)  # no secret
    kind = "steady" if number % 3 == 0 else draw.choice(KINDS)
    clients, servers = draw.choice((3, 5, 8, 12, 20)), draw.choice((2, 4, 6))
    first, second = draw.sample(sorted(_LOADS), 2)
    change_s = WARMUP_S + DURATION_S * draw.uniform(0.3, 0.7)
    some = max(1, round(clients * draw.uniform(0.3, 0.8)))
    groups = {
        "steady": [_group(clients, first)],
        "slow-server": [_group(clients, first)],
        "come-and-go": [
            _group(clients - some + 1, first),
            _group(some, first, **{draw.choice(("start_s", "stop_s")): change_s}),
        ],
        "phases": [_group(clients, first, stop_s=change_s), _group(clients, second, start_s=change_s)],
        "tenants": [_group(clients, first), _group(some, second)],
    }[kind]
    text = [
        f'name = "{kind}-{number}"\nseed = {1 + number}\nwarmup_s = {WARMUP_S}\nduration_s = {DURATION_S}\n',
        f"[noise]\nservice_sd_percent = {draw.choice((0, 10, 20))}\n",
        f"[[servers]]\ncount = {servers}\n",
        *groups,
        *(_load(one) for one in sorted({first, second})),
    ]
    if kind == "slow-server":
        text.append(
            f'[[failures]]\nkind = "slow-server"\nserver = 0\nat_s = {change_s:.3f}\nfor_s = {DURATION_S}\n'
            f"factor = {draw.choice((2, 4))}\n"
        )
    return Member(number, kind, parse_scenario("".join(text)))


def _group(count: int, load: str, **times_s: float) -> str:
    times = "".join(f"{name} = {value:.3f}\n" for name, value in times_s.items())
    return f'[[clients]]\ncount = {count}\nworkload = "{load}"\ncache = {{ page_cache_mib = 0 }}\n{times}'


def _load(name: str) -> str:
    operation, kib, at_random, direct, threads = _LOADS[name]
    flags = f"random = {str(at_random).lower()}, directio = {str(direct).lower()}"
    return (
        f'[[workloads]]\nname = "{name}"\nfilesets = [{{ name = "file", size_mib = 2560 }}]\n'
        f"[[workloads.threads]]\ninstances = {threads}\n"
        f'flowops = [{{ op = "{operation}", iosize_kib = {kib}, {flags} }}]\n'
    )


TRAINING = tuple(member(number) for number in range(12))
HELD_OUT = tuple(member(number) for number in range(1_000, 1_050))
