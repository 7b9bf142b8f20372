"""Studies that tests of several commands and loops begin with, and what a session makes of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ascar.capes.session.environment import LoadEnvironment, RequestedEnvironment
from ascar.capes.session.parameters import session_parameters
from ascar.space import study_space
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from ascar.capes.session.study import OnlineStudy

SMALL = """
[study]
name = "small"
objective = "maximize throughput_ops_per_s"
budget = "1 min"

[target]
kind = "localfs"

[workload]
kind = "command"
"""
"""A study of this machine's file systems, whose runs tests write themselves."""

TURNS_SOON = """
[online.learner.modern]
first_ticks = 3
settle_ticks_max = 1
visit_ticks_min = 1
visit_ticks_max = 2
stay_ticks_max = 2
"""
"""The end of a study of a session: the learner turns knobs after a few ticks, and every few."""

TWO_OBJECTIVES = '["maximize throughput_ops_per_s", "minimize latency_ms_p99"]'

_GOALS = """
[study]
name = "{name}"
objective = {objective}
budget = "{budget}"
{study}
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "100 + 20 * depth", latency_ms_p99 = "5 + depth * depth / 16" }}
noise_relative_sd = 0.03
run_relative_sd = 0.01
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 32
cost = "dyn-kernel"
[space.parameters.useless]
kind = "ordinal"
values = [0, 1, 2]
default = 0
cost = "dyn-kernel"
[optimizer]
kind = "{kind}"
{rest}
"""


def goals(objective=TWO_OBJECTIVES, *, name="goals", budget="4 min", kind="random", more="", rest=""):
    """A study of a formula in which more depth means more throughput and more latency."""
    return _GOALS.format(objective=objective, name=name, budget=budget, kind=kind, study=more, rest=rest)


def environment_of(
    study: OnlineStudy, device: str | None = None, *, has_load: bool = False
) -> LoadEnvironment:
    """What a study tunes, made without entering its target."""
    target = RequestedEnvironment.of(study).target
    space = study_space(study, target.space)
    parameters = session_parameters(target, space, device)
    return LoadEnvironment(
        space=space,
        parameters=parameters,
        kind=study.target["kind"],
        device=device,
        workspace=Workspace(Path("/nowhere")) if has_load else None,
        has_adapter=not all(one.of_kernel for one in parameters),
    )


HELPS_TOGETHER = """
[study]
name = "stopped"
objective = "maximize score"
budget = "60 min"
seed = 1
[target]
kind = "simulated"
metrics = { score = "1000 * (1 + if(p2 >= 2 and p5 >= 2, 0.4, if(p2 >= 2 or p5 >= 2, -0.1, 0)))" }
noise_relative_sd = 0.02
run_relative_sd = 0.005
seed = 1
[optimizer]
kind = "random"
[stop]
trials = 25
""" + "".join(
    f'[space.parameters.p{index}]\nkind = "integer"\nlow = 0\nhigh = 4\ndefault = 0\ncost = "dyn-kernel"\n'
    for index in range(8)
)
"""Two of eight parameters help, and only together: after the verdict the study reduces what it found."""
