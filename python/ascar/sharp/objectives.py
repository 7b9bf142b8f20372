"""Objectives of congestion rules by name (Li, section 3.1.5), besides any formula over a run's metrics."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import InputError, StudyError
from ascar.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.simulation.controlled import Followers

ALPHA_FAIRNESS = re.compile(r"alpha_fairness_(\d{1,3}(?:p\d{1,9})?)", re.ASCII)
"""Names of the metrics that are alpha-fairness, "p" for the decimal point: alpha_fairness_0p5."""
_SHOWN_MAX = 120
_MB_PER_S_MIN = 1e-6  # a client that got nothing would be worth minus infinity


@dataclass(frozen=True, slots=True)
class ObjectiveForm:
    """An objective with numbers to fill in.

    Attributes:
        parameters: names of the numbers, in their order after the colon.
        formula: the formula with the names in braces.
        meaning: the meaning for people.
    """

    parameters: tuple[str, ...]
    formula: str
    meaning: str


FORMS: Mapping[str, ObjectiveForm] = {
    "throughput": ObjectiveForm((), "maximize throughput_mb_per_s", "total of all clients"),
    "metadata-operations": ObjectiveForm(
        (), "maximize metadata_operations_per_s", "operations on metadata of all clients"
    ),
    "throughput-cv": ObjectiveForm(
        ("k0",), "maximize if(stdev < {k0} * tp, tp, 0)", "tp where stdev / tp < k0, else 0"
    ),
    "tp-stdev": ObjectiveForm(("alpha",), "maximize tp - {alpha} * stdev", "tp - alpha * stdev (eq. 3.1)"),
    "alpha-fairness": ObjectiveForm(
        ("alpha",),
        "maximize alpha_fairness_{alpha}",
        "sum over clients of x^(1-alpha) / (1-alpha), of log(x) for alpha = 1",
    ),
    "inverse-stdev": ObjectiveForm(
        ("alpha",), "maximize (1 - {alpha}) * tp + {alpha} / stdev", "(1-alpha) tp + alpha / stdev"
    ),
    "power": ObjectiveForm(
        ("a", "alpha", "b"), "maximize {a} * tp ** {alpha} - {b} * stdev", "a tp^alpha - b stdev"
    ),
    "log": ObjectiveForm(
        ("a", "alpha", "b"),
        "maximize {a} * log(tp) / log({alpha}) - {b} * stdev",
        "a log_alpha(tp) - b stdev",
    ),
    "jain": ObjectiveForm((), "maximize jain_index", "Jain's fairness index of the clients"),
    "latency": ObjectiveForm(
        ("percentile",), "minimize latency_ms_p{percentile}", "of requests: 50, 90, 99 or 999"
    ),
}
"""tp and stdev are mean and standard deviation of throughput(client, second), in MB/s."""


def objective_of(text: str, followers: Followers = None) -> Objective:
    """An objective: "maximize FORMULA", "minimize FORMULA", or a form with its numbers, e.g. "tp-stdev:1".

    Args:
        text: the objective; the throughput of streams of metadata operations is that of operations.
        followers: the streams that it is an objective for.

    Raises:
        InputError: it is none; names the forms.
    """
    if followers == "metadata" and text.strip() == "throughput":
        text = "metadata-operations"
    if text.strip().partition(" ")[0] in ("maximize", "minimize"):
        return Objective.parse(text, "--objective")
    name, _, given = text.strip().partition(":")
    form = FORMS.get(name)
    shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    if form is None:
        raise InputError(
            f"--objective = {shown!r}: must be 'maximize FORMULA', 'minimize FORMULA', or one of "
            f"{', '.join(_written(*one) for one in FORMS.items())}"
        )
    numbers = given.split(",") if given else []
    wanted = f"--objective = {shown!r}: must be {_written(name, form)}"
    if len(numbers) != len(form.parameters):
        raise InputError(f"{wanted}, with {len(form.parameters)} numbers; got {len(numbers)}")
    values = {key: _number(key, one, wanted) for key, one in zip(form.parameters, numbers, strict=True)}
    if name == "alpha-fairness":
        values["alpha"] = values["alpha"].strip("()").replace(".", "p")
    try:
        objective = Objective.parse(form.formula.format(**values), "--objective")
    except StudyError:
        raise InputError(f"{wanted}, with other numbers") from None
    if name == "alpha-fairness" and not ALPHA_FAIRNESS.fullmatch(objective.unit):
        raise InputError(f"{wanted}, alpha from 0 to 999")
    return objective


def alpha_fairness(mb_per_s: Sequence[float], alpha: float) -> float:
    """Sum over clients of U(x) = x^(1-alpha) / (1-alpha), log(x) for alpha = 1 (Mo and Walrand 2000).

    Args:
        mb_per_s: throughput of each client; below 1e-6 it counts as that.
        alpha: 0: the total; 1: proportional fairness; large: the least.
    """
    shares = [max(one, _MB_PER_S_MIN) for one in mb_per_s]
    if alpha == 1:
        return math.fsum(math.log(one) for one in shares)
    return math.fsum(one ** (1 - alpha) / (1 - alpha) for one in shares)


def _written(name: str, form: ObjectiveForm) -> str:
    return f"{name}:{','.join(key.upper() for key in form.parameters)}" if form.parameters else name


def _number(key: str, text: str, wanted: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and abs(value) <= 1e9):  # as `wanted` has it
        raise InputError(f"{wanted}, {key} a number of at most 1e9; got {text[:_SHOWN_MAX]!r}")
    plain = f"{value:.9f}".rstrip("0").rstrip(".")
    return f"({plain})" if value < 0 else plain
