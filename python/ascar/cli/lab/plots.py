"""Which figures a comparison of optimizers gives, and their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascar.errors import InputError, WorkError
from ascar.lab import figures, summarize
from ascar.lab.curves import stops_by_mutations, stops_by_window
from ascar.lab.simulation import built, follow
from ascar.optimizers import open_optimizer
from ascar.render import in_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from ascar.lab import CheckpointSummary, Experiment, SearchProblem, SimulatedSearch, Specification
    from ascar.lab.figures import Lines
    from ascar.lab.request import Request

_LEVELS = (0.99, 0.995)
_WITHIN = (0.01, 0.02, 0.05)
_WINDOWS = (8, 16, 24, 32, 40, 48, 56, 64, 72)
_MUTATIONS = tuple(range(10))


def check_format(name: str) -> None:
    """Refuse what cannot be written.

    Raises:
        InputError: it is neither svg nor png.
    """
    if name not in ("svg", "png"):
        raise InputError(f"--plot-format = {name!r}: must be svg or png")


def draw(
    request: Request, done: Mapping[Experiment, Sequence[SimulatedSearch]], directory: Path, ending: str
) -> list[Path]:
    """Draw all figures that the runs allow.

    Returns:
        Their files.

    Raises:
        WorkError: one cannot be written.
    """
    written: list[Path] = []
    for problem in request.problems:
        folder = directory / _safe(problem.name)
        for name, figure in _figures(request, done, problem):
            if figure is None:
                continue
            path = folder / f"{name}.{ending}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, format=ending, dpi=150)
            except OSError as error:
                raise WorkError(f"{str(path)!r} cannot be written: {error.strerror}") from error
            written.append(path)
    return written


def _figures(
    request: Request, done: Mapping[Experiment, Sequence[SimulatedSearch]], specification: Specification
) -> Iterator[tuple[str, Figure | None]]:
    problem = built(specification)
    unit = str(getattr(specification, "objective", "value"))
    lines = _lines(request.of_contenders(), done, specification)
    if lines:
        yield from _of_lines(lines, problem, unit)
        yield "regret", figures.regret(_summaries(lines, problem, request))
        yield from _of_genetic(lines, problem, request)
    other = request.restricted.get(specification.name)
    if other is not None and lines:
        fixed = _lines(request.of_contenders(), done, other)
        both = {f"{name}, all": runs for name, runs in lines.items()}
        both |= {f"{name}, restricted": runs for name, runs in fixed.items()}
        yield "restricted", figures.best_so_far(both, problem, unit)
    for sweep in request.sweeps:
        swept = _lines(request.of_sweep(sweep), done, specification)
        if swept:
            name = _safe(sweep.name)
            yield f"sweep-{name}", figures.near_optimum(swept, problem, 0.995, graded=len(swept) > 3)
            yield f"sweep-{name}-regret", figures.swept(_summaries(swept, problem, request), sweep.name)


def _of_lines(lines: Lines, problem: SearchProblem, unit: str) -> Iterator[tuple[str, Figure | None]]:
    yield "best-so-far", figures.best_so_far(lines, problem, unit)
    yield "best-so-far-time", figures.best_so_far(lines, problem, unit, timed=True)
    for level in _LEVELS:
        yield f"near-{100 * level:g}", figures.near_optimum(lines, problem, level)
        yield f"near-{100 * level:g}-time", figures.near_optimum(lines, problem, level, timed=True)
    yield "instantaneous", figures.instantaneous(lines, problem, unit)


def _of_genetic(
    lines: Lines, problem: SearchProblem, request: Request
) -> Iterator[tuple[str, Figure | None]]:
    """What only a search with generations shows."""
    runs = lines.get("genetic")
    if runs is None:
        return
    windows = {f"K = {in_percent(k)}": stops_by_window(runs, problem, _WINDOWS, k) for k in _WITHIN}
    yield "stopping-window", figures.stopping(windows, "window without a gain (evaluations)")
    mutations = {f"K = {in_percent(k)}": stops_by_mutations(runs, problem, _MUTATIONS, k) for k in _WITHIN}
    yield "stopping-diversity", figures.stopping(mutations, "mutations after convergence (M = N = 80%)")
    search = open_optimizer({"kind": "genetic"}, problem.space, request.budget.seed, problem.start)
    follow(search, problem, request.budget, request.budget.seed)
    if generations := getattr(search, "generations", ()):
        yield "alleles", figures.alleles(generations)


def _lines(
    experiments: Sequence[Experiment],
    done: Mapping[Experiment, Sequence[SimulatedSearch]],
    specification: Specification,
) -> Lines:
    """Runs by optimizer on one problem; those without any are left out."""
    return {
        one.contender.label: done[one]
        for one in experiments
        if one.specification == specification and done[one]
    }


def _summaries(lines: Lines, problem: SearchProblem, request: Request) -> dict[str, list[CheckpointSummary]]:
    return {name: summarize(runs, problem, request.budget.judged) for name, runs in lines.items()}


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80]
