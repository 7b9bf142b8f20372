"""Texts of studies that tests of several commands and loops begin with."""

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
