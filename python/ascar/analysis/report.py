"""The report: one self-contained HTML page that needs nothing but the history."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from ascar import __version__
from ascar.analysis import figures, sections
from ascar.analysis.drawing import svg
from ascar.analysis.frames import trials_frame
from ascar.analysis.labels import metric_label
from ascar.analysis.marginals import marginal_figure, marginals
from ascar.analysis.markup import Html, each, tag
from ascar.analysis.parsimony_section import parsimony_section
from ascar.analysis.several import several_section
from ascar.analysis.spectra_section import importance_section
from ascar.analysis.variation_section import variation_section
from ascar.errors import AscarError, HistoryError
from ascar.pilot.turns import mean_of_runs
from ascar.render import compact, duration, percentage
from ascar.results.trial import Purpose, TrialState
from ascar.systems import commands_of
from ascar.workloads.open_loop import closed_loop_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ascar.analysis.drawing import Drawing
    from ascar.history import Run
    from ascar.objective import Objective
    from ascar.results.outcome import Outcome
    from ascar.results.trial import Trial

_MARGINALS_SHOWN = 8
# Nothing is loaded from anywhere, whatever a name in the study says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def write_report(run: Run, outcome: Outcome, out_dir: Path) -> Path:
    """Write the report of a run to `out_dir`, which is made when missing; returns the page's path.

    Args:
        run: the run, finished or not.
        outcome: the run's outcome, e.g. `run.outcome()`.
        out_dir: the page is NAME-run-ID.html in it; an older one of the same run is replaced.

    Raises:
        HistoryError: the page cannot be written, or the history cannot be read.
    """
    page = report_page(run, outcome, commands_for(run, outcome))
    path = out_dir / f"{run.name}-run-{run.id}.html"
    part = path.with_suffix(".html.part")
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        part.write_text(page, "utf-8")
        part.replace(path)
    except OSError as error:
        raise HistoryError(f"report {str(path)!r}: {error.strerror}; name another directory") from error
    return path


def commands_for(run: Run, outcome: Outcome) -> Mapping[str, Sequence[str]]:
    """How an administrator would put the recommendation in force, where this machine has such a target."""
    if outcome.verdict.kind != "improved":
        return {}
    try:
        chosen = run.space.departures(outcome.recommended)
        target, notes = run.study.target, run.origin_notes
        return commands_of(target, run.space, outcome.recommended, chosen, notes=notes)
    except AscarError as error:
        return {"shell": [f"# not known here: {error.message}", f"ascar export {run.id} --as shell"]}


def report_page(run: Run, outcome: Outcome, commands: Mapping[str, Sequence[str]]) -> str:
    """The page as text.

    Args:
        run: the run.
        outcome: the run's outcome, e.g. `run.outcome()`.
        commands: lines by form ("shell", "fstab", ...) that put the recommendation in force.
    """
    trials, objective, space = run.trials(), run.objective, run.space
    default = outcome.default.configuration if outcome.default is not None else space.default()
    title = f"{run.name}: tuning report"
    body = each(
        tag(
            "header",
            tag(
                "h1", f"Tuning report: {run.name}, run {run.id}, {run.started_at[:16].replace('T', ' ')} UTC"
            ),
            sections.verdict_section(outcome, objective),
        ),
        tag(
            "main",
            _facts(run, outcome, trials),
            sections.configuration_section(outcome, space),
            parsimony_section(outcome, objective),
            sections.apply_section(outcome, commands),
            _comparison(outcome, objective),
            several_section(run, outcome, trials),
            _search(trials, outcome, objective),
            _parameters(trials, run),
            variation_section(run, trials),
            tag("h2", "What the time went on"),
            _figure(figures.stages(outcome.stage_s), "stages", ""),
            sections.time_section(outcome, trials),
            tag("h2", "Valid for"),
            tag("p", "Another kernel, device, memory size or load may give another result."),
            _loop(run, outcome),
            sections.validity_section(outcome.machine, run.versions),
            tag("h2", "Trials"),
            sections.trials_section(trials, space, objective, default),
            tag("h2", "Failures"),
            sections.failures_section(trials),
            tag("h2", "Methods"),
            sections.methods_section(outcome, trials),
            _study(run),
        ),
        tag(
            "footer",
            f"Written by ascar {__version__} from its history. This page loads nothing from elsewhere.",
        ),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(files("ascar.analysis").joinpath("report.css").read_text("utf-8"))),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _loop(run: Run, outcome: Outcome) -> Html:
    """What is to be known of the percentiles that the study goes by."""
    note = closed_loop_note(outcome.machine, [name for one in run.objectives for name in one.formula.names])
    return tag("p", f"{note}.") if note else Html("")


def _facts(run: Run, outcome: Outcome, trials: Sequence[Trial]) -> Html:
    total_s = sum(outcome.stage_s.values())
    pairs: list[tuple[str, object]] = [
        ("objective", f"{run.objective.direction} {metric_label(run.objective.unit)}")
    ]
    default = _default_score(trials, outcome)
    verdict = outcome.verdict
    if default is not None:
        pairs.append(("default", compact(default)))
    if outcome.best is not None:
        best = mean_of_runs(verdict.best_scores) if verdict.best_scores else outcome.best.score
        pairs.append(("best found", compact(best)))
    failed = sum(outcome.counts.get(state, 0) for state in (TrialState.FAILED, TrialState.QUARANTINED))
    pruned = outcome.counts.get(TrialState.PRUNED, 0)
    said = [f"{sum(outcome.counts.values()):,}"]
    said += [f"{pruned:,} abandoned early"] if pruned else []
    said += [f"{failed:,} failed"] if failed else []
    pairs.append(("trials", ", ".join(said)))
    if pruned:
        pairs.append(("load saved", duration(outcome.saved_s)))
    pairs.append(("time", duration(total_s)))
    if total_s > 0:
        pairs.append(("of it in the load", percentage(outcome.stage_s.get("load", 0.0) / total_s)))
    return sections.facts(pairs)


def _default_score(trials: Sequence[Trial], outcome: Outcome) -> float | None:
    """The default's mean in the last comparison, or before the search; its one score in a sweep."""
    searched = [t.score for t in trials if t.purpose is Purpose.DEFAULT and t.score is not None]
    if scores := outcome.verdict.default_scores or searched:
        return mean_of_runs(scores)
    return None if outcome.default is None else outcome.default.score


def _comparison(outcome: Outcome, objective: Objective) -> Html:
    drawing = figures.comparison(outcome.verdict, objective)
    if drawing is None:
        return Html("")
    caption = (
        f"Each dot is one run, measured in turn with the other side; the diamonds are the means with "
        f"{percentage(1 - outcome.verdict.p_value_limit)} intervals, each side's alone, valid after every "
        "run. The verdict rests on the pairs, whose differences are known better than either side."
    )
    return each(tag("h2", "Best and default, measured again"), _figure(drawing, "comparison", caption))


def _search(trials: Sequence[Trial], outcome: Outcome, objective: Objective) -> Html:
    frame = trials_frame(trials, objective)
    default = None if outcome.default is None else outcome.default.configuration
    parts: list[Html] = [
        tag("h2", "The search"),
        _figure(
            figures.best_so_far(frame, objective, _default_score(trials, outcome)),
            "best",
            "The best score found so far.",
        ),
        _figure(
            figures.instantaneous(trials, objective),
            "instantaneous",
            "What the system delivered while it was being tuned; the gaps are changes and fills.",
        ),
        _figure(
            figures.distribution(trials, objective, default),
            "distribution",
            "How the configurations tried are distributed; the diamond is the default.",
        ),
    ]
    if outcome.stopped:
        parts.insert(1, tag("p", f"The search ended because {outcome.stopped}."))
    by_number = {trial.number: trial for trial in trials}
    for name, trial in (("best", outcome.best), ("default", outcome.default)):
        drawing = (
            None if trial is None else figures.readings(by_number.get(trial.number, trial), objective, name)
        )
        if trial is not None and drawing is not None:
            which = "the best of the search" if name == "best" else "the default"
            caption = (
                f"Readings of trial {trial.number}, {which}; "
                "the line is the mean of the stable phase, the band around it its interval."
            )
            parts.append(_figure(drawing, f"readings-{name}", caption))
    return (
        each(*parts)
        if any("<figure" in part for part in parts)
        else each(parts[0], tag("p", "No trial has a score yet."))
    )


def _parameters(trials: Sequence[Trial], run: Run) -> Html:
    found = marginals(trials, run.space)
    if not found:
        return Html("")
    scores = [trial.score for trial in trials if trial.score is not None]
    span = min(scores), max(scores)
    drawn = [
        tag(
            "figure",
            tag("figcaption", tag("code", marginal.parameter)),
            Html(svg(marginal_figure(marginal, run.objective, span), f"marginal-{index}")),
        )
        for index, marginal in enumerate(found)
    ]
    more = Html("")
    if len(drawn) > _MARGINALS_SHOWN:
        summary = tag("summary", f"{len(drawn) - _MARGINALS_SHOWN} more parameters")
        more = tag("details", summary, tag("div", *drawn[_MARGINALS_SHOWN:], class_="grid"))
    return each(
        tag("h2", "Parameters"),
        tag(
            "p",
            "Scores by value: each trial a dot, the middle half a box, the median a line, the mean a "
            "diamond. Those whose values differ most come first. A search looks more often where scores are "
            "good, so this shows what went along with what, not what causes it.",
        ),
        tag("div", *drawn[:_MARGINALS_SHOWN], class_="grid"),
        more,
        importance_section(run, trials),
    )


def _study(run: Run) -> Html:
    return tag("details", tag("summary", "The study file"), tag("pre", tag("code", run.text)))


def _figure(drawing: Drawing | None, name: str, caption: str) -> Html:
    if drawing is None:
        return Html("")
    inside = tag("div", Html(svg(drawing, name)), class_="wide", tabindex="0", role="group", aria_label=name)
    return tag("figure", inside, tag("figcaption", caption) if caption else "")
