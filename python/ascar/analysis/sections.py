"""The report's parts in words and tables; each takes values and gives markup."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from ascar.analysis.labels import metric_label
from ascar.analysis.markup import Html, each, tag
from ascar.render import compact, duration, p_value, percentage
from ascar.results.stages import STAGES, in_order
from ascar.results.trial import Trial, TrialState
from ascar.space.parameter import value_text
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascar.objective import Objective
    from ascar.results.outcome import Outcome
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration, Space
    from ascar.space.domain import Value

_ROWS_MAX = 1000
_EXAMPLES_MAX = 20
_SETTINGS_SHOWN = 2
_DASH = "\N{EN DASH}"
_FORMS = {
    "shell": "Shell commands",
    "fstab": "/etc/fstab",
    "sysctl": "/etc/sysctl.d/90-ascar.conf",
    "udev": "/etc/udev/rules.d/90-ascar.rules",
    "tuned": "TuneD profile",
    "postgresql.conf": "postgresql.conf",
    "alter-system": "SQL statements",
    "redis.conf": "redis.conf",
    "config-set": "Statements for redis-cli",
    "patroni": "Patroni's dynamic configuration",
    "ansible": "A playbook of Ansible",
    "my.cnf": "my.cnf",
    "set-global": "Statements for mariadb",
    "rocksdb-options": "RocksDB's OPTIONS file",
    "ceph-config": "Commands for ceph",
    "nfs.conf": "/etc/nfs.conf",
    "systemd": "A drop-in of systemd",
}


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], tall: bool = False) -> Html:
    """A table whose first column names the row; columns whose heads end with a space hold numbers."""
    numeric = [title.endswith(" ") for title in head]
    heading = (
        tag("th", title.strip(), scope="col", class_="number" if right else None)
        for title, right in zip(head, numeric, strict=True)
    )
    body: list[Html] = []
    for row in rows:
        cells = [tag("th", row[0], scope="row", class_="number" if numeric[0] else None)]
        cells += [
            tag("td", cell, class_="number" if right else None)
            for cell, right in zip(row[1:], numeric[1:], strict=True)
        ]
        body.append(tag("tr", *cells))
    inside = tag("table", tag("caption", caption), tag("thead", tag("tr", *heading)), tag("tbody", *body))
    kind = "scroll tall" if tall else "scroll"
    return tag("div", inside, class_=kind, tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """A few numbers that matter most."""
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts"
    )


def verdict_section(outcome: Outcome, objective: Objective) -> Html:
    """What the study came to, in large letters."""
    verdict = outcome.verdict
    measure = metric_label(objective.unit)
    match verdict.kind:
        case "improved":
            gain = objective.gained(verdict)
            headline = f"{gain} {measure} than the default"
            said = (
                f"The recommended configuration against the default: {gain} {measure}"
                f"{_interval(verdict, objective)}."
            )
        case "default-is-fine":
            headline = "The default is fine"
            gain = f"{objective.gained(verdict)}{_interval(verdict, objective)}"
            said = (
                f"The best configuration found is less than {percentage(verdict.margin)} better than the "
                f"default on {measure}: measured again, it has {gain}."
            )
        case "undecided":
            headline = "Undecided"
            said = (
                f"Measured again, the best configuration found has {objective.gained(verdict)} {measure}"
                f"{_interval(verdict, objective)}. Neither a gain nor its absence is shown."
            )
        case "not-verified":
            headline = "Not verified"
            said = "There is no comparison of another configuration with the default, so no gain is claimed."
    parts = [tag("p", headline, class_="headline"), tag("p", said)]
    if verdict.note:
        parts.append(tag("p", verdict.note, class_="muted"))
    return tag("section", *parts, class_=f"verdict {verdict.kind}", aria_label="Verdict")


def _interval(verdict: Verdict, objective: Objective) -> str:
    said = ""
    if limits := objective.gained_between(verdict):
        said += f", {percentage(1 - verdict.p_value_limit)} interval {limits}"
    if verdict.p_value is not None:
        probability = p_value(verdict.p_value)
        said += f", {probability}, {verdict.runs_per_side} interleaved runs a side"
    return said


def configuration_section(outcome: Outcome, space: Space) -> Html:
    """The recommended configuration beside the default, what changing costs, what it promises less of."""
    default = outcome.default.configuration if outcome.default is not None else space.default()
    improved = outcome.verdict.kind == "improved"
    shown = outcome.recommended
    title = "Recommended configuration"
    note = Html("")
    if not improved and outcome.best is not None and outcome.best.configuration != default:
        shown, title = outcome.best.configuration, "Best configuration found"
        note = tag("p", "This is what the search liked best; it is no recommendation. Keep the default.")
    difference = space.change(default, shown)
    weakened = space.weakened(shown)
    parts = [tag("h2", title), note]
    if weakened:
        listed = "; ".join(
            f"{name} weakens {' and '.join(sorted(kinds))}" for name, kinds in weakened.items()
        )
        parts.append(
            tag("p", tag("strong", "It promises less than the default: "), f"{listed}.", class_="warning")
        )
    if difference.cost is None:
        parts.append(tag("p", "It is the default configuration: nothing needs to be changed."))
    else:
        parts.append(
            tag(
                "p",
                f"{len(difference.parameters)} parameters differ. The costliest change is ",
                tag("strong", difference.cost.value),
                f" (category {difference.cost.category}): {difference.cost.description}.",
            )
        )
    changed = [name for name in difference.parameters if name in shown]
    gone = [name for name in difference.parameters if name not in shown]
    same = [name for name in space.names if name in shown and name not in difference.parameters]
    if changed:
        parts.append(_settings("Parameters that differ from the default", changed, default, shown, space))
    for names, what in (
        (gone, "parameters of the default no longer apply"),
        (same, "parameters stay as they are"),
    ):
        if names:
            title = f"{len(names)} {what}"
            inside = _settings(title, names, default, shown, space)
            parts.append(tag("details", tag("summary", title), inside))
    return each(*parts)


def _settings(
    title: str, names: Sequence[str], default: Configuration, shown: Configuration, space: Space
) -> Html:
    rows = [_setting(name, default, shown, space) for name in names]
    head = ["parameter", "default", "here", "change cost", "weakens"]
    if all(row[-1] == _DASH for row in rows):
        head.pop()
        rows = [row[:-1] for row in rows]
    return table(title, head, rows)


def _setting(name: str, default: Configuration, shown: Configuration, space: Space) -> list[object]:
    parameter = space[name]
    value = shown.get(name)
    weakens = [] if value is None else sorted(parameter.weakens(value))
    new = value_of(space, name, value)
    return [
        each(
            tag("code", name),
            tag("div", parameter.description, class_="muted") if parameter.description else "",
        ),
        value_of(space, name, default.get(name)),
        tag("span", new, class_="new") if default.get(name) != value else new,
        f"{parameter.cost.value} ({parameter.cost.category})",
        ", ".join(weakens) or _DASH,
    ]


def value_of(space: Space, name: str, value: Value | None) -> str:
    """A value with its unit or its meaning; "n/a" where the parameter does not apply."""
    if value is None:
        return "n/a"
    parameter = space[name]
    meaning = dict(parameter.special).get(value)
    if meaning:
        return f"{value_text(value)} ({meaning})"
    if isinstance(value, (bool, str)) or not parameter.unit:
        return value_text(value)
    return f"{value_text(value)}%" if parameter.unit == "percent" else f"{value_text(value)} {parameter.unit}"


def apply_section(outcome: Outcome, commands: Mapping[str, Sequence[str]]) -> Html:
    """How to put the recommendation in force."""
    if outcome.verdict.kind != "improved":
        return Html("")
    parts = [
        tag("h2", "How to apply it"),
        tag(
            "p",
            tag("code", f"ascar apply {outcome.run_id} --dry-run"),
            " shows exactly what would be run on this machine, and warns where the machine differs from the "
            "one that was measured. Nothing that holds data is ever formatted.",
        ),
    ]
    for form, lines in commands.items():
        if lines:
            parts += [tag("h3", _FORMS.get(form, form)), tag("pre", tag("code", "\n".join(lines)))]
    return each(*parts)


def time_section(outcome: Outcome, trials: Sequence[Trial]) -> Html:
    """What the time went on."""
    total_s = sum(outcome.stage_s.values())
    if total_s <= 0:
        return tag("p", "No time was recorded.")
    rows = [
        [
            stage,
            duration(outcome.stage_s[stage]),
            percentage(outcome.stage_s[stage] / total_s),
            STAGES.get(stage, ""),
        ]
        for stage in in_order(outcome.stage_s)
    ]
    rows.append(["all", duration(total_s), "100%", ""])
    steps: Counter[str] = Counter()
    for trial in trials:
        steps.update(trial.change.step_s if trial.change else {})
    parts = [table("Time by stage", ("stage", "time ", "share ", "what it is"), rows)]
    if sum(steps.values()) >= 0.001:
        spent = [(step, spent_s) for step, spent_s in steps.most_common(8) if spent_s >= 0.001]
        listed = ", ".join(f"{step} {duration(spent_s)}" for step, spent_s in spent)
        parts.append(tag("p", f"Changes took, by step: {listed}.", class_="muted"))
    return each(*parts)


def trials_section(
    trials: Sequence[Trial], space: Space, objective: Objective, default: Configuration
) -> Html:
    """Every trial, or the best thousand of them."""
    shown = list(trials)
    note = Html("")
    if len(shown) > _ROWS_MAX:
        ranked = sorted(shown, key=lambda trial: (not trial.usable, -objective.sign * (trial.score or 0.0)))
        shown = ranked[:_ROWS_MAX]
        note = tag(
            "p", f"The best {_ROWS_MAX:,} of {len(trials):,}; `ascar history export` writes all of them."
        )
    head = (
        "trial ",
        "for",
        "state",
        f"{metric_label(objective.unit)} ",
        "interval ",
        "took ",
        "differs from the default in",
    )
    return each(
        note, table("Trials", head, (_trial_row(trial, space, default) for trial in shown), tall=True)
    )


def _trial_row(trial: Trial, space: Space, default: Configuration) -> list[object]:
    measured = trial.measurement
    interval = _DASH
    if measured is not None and measured.ci_low is not None and measured.ci_high is not None:
        interval = f"{compact(measured.ci_low)} \N{EN DASH} {compact(measured.ci_high)}"
    names = [
        name for name in space.change(default, trial.configuration).parameters if name in trial.configuration
    ]
    differs = [f"{name}={value_text(trial.configuration[name])}" for name in names]
    state = trial.state.value + (f"; breaks {', '.join(trial.unmet)}" if trial.unmet else "")
    if trial.abandonment is not None:
        state = trial.abandonment.line
    return [
        trial.number,
        trial.purpose.value,
        state,
        compact(trial.score),
        interval,
        duration(sum(trial.stage_s.values())),
        _folded(differs) if differs else "nothing",
    ]


def _folded(settings: Sequence[str]) -> Html:
    """The first settings; the others behind a click, or a table of a hundred trials fills ten screens."""
    if len(settings) <= _SETTINGS_SHOWN + 1:
        return tag("code", ", ".join(settings))
    first, rest = settings[:_SETTINGS_SHOWN], settings[_SETTINGS_SHOWN:]
    summary = tag("summary", tag("code", ", ".join(first)), f" and {len(rest)} more")
    return tag("details", summary, tag("code", ", ".join(rest)))


def _text(value: Value | None) -> str:
    return "n/a" if value is None else value_text(value)


def validity_section(machine: Mapping[str, Any], versions: Mapping[str, str]) -> Html:
    """What the result holds for: another kernel, device, memory or load may give another one."""
    rows = [[name, value] for name, value in _flat(machine)]
    rows += [[f"version of {name}", version] for name, version in versions.items()]
    return table("Where and with what it was measured", ("what", "value"), rows)


def _flat(mapping: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in mapping.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{name}: ")
        elif isinstance(value, (list, tuple)):
            items = cast("Sequence[Any]", value)
            yield name, ", ".join(compact(item) if isinstance(item, float) else str(item) for item in items)
        elif key.endswith("_bytes") and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            yield name.removesuffix(" bytes"), format_size(value)
        elif isinstance(value, float):
            yield name, compact(value)
        elif isinstance(value, bool) or value is None:
            yield name, {True: "yes", False: "no", None: _DASH}[value]
        else:
            yield name, str(value)


def failures_section(trials: Sequence[Trial]) -> Html:
    """Trials that failed, those with one message together, with the failing program's last words."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        if trial.failure is not None:
            groups.setdefault((trial.failure.stage, trial.failure.message), []).append(trial)
    if not groups:
        return tag("p", "No trial failed.")
    parts: list[Html] = []
    for (stage, message), failed in sorted(groups.items(), key=lambda item: -len(item[1])):
        numbers = ", ".join(str(trial.number) for trial in failed[:_EXAMPLES_MAX])
        more = f" and {len(failed) - _EXAMPLES_MAX} more" if len(failed) > _EXAMPLES_MAX else ""
        parts += [tag("h3", f"{stage}: {message}"), tag("p", f"Trials {numbers}{more}", class_="muted")]
        stderr = next(
            (trial.failure.stderr for trial in failed if trial.failure and trial.failure.stderr), ""
        )
        configuration = failed[0].configuration
        parts.append(
            tag(
                "details",
                tag("summary", f"Configuration and last output of trial {failed[0].number}"),
                tag("pre", "\n".join(f"{name} = {_text(value)}" for name, value in configuration.items())),
                tag("pre", stderr) if stderr else tag("p", "The program said nothing on stderr."),
            )
        )
    return each(*parts)


def methods_section(outcome: Outcome, trials: Sequence[Trial]) -> Html:
    """How the numbers came about."""
    verdict = outcome.verdict
    measured = next((trial.measurement for trial in trials if trial.measurement is not None), None)
    confidence = percentage(measured.confidence) if measured else "the study's"
    notes = [
        "Score of a trial: unit readings are taken while the load runs. Change points mark off warm-up and "
        "cool-down; the mean is that of the stable phase between them.",
        f"Interval of a trial ({confidence}): neighbouring readings are alike, so the interval rests on "
        "fewer independent samples than there are readings. It says how sure the mean of this one run is, "
        "not how much one run differs from the next.",
        "Verdict: the best configuration and the default are measured again, in turn, and compared after "
        "every pair of runs by a test that is made for repeated looks: over all of them together, equal "
        f"configurations are called different with a probability of at most {verdict.p_value_limit:g}, and "
        "interval and p-value are valid whenever it ends. The search's own scores are not used for it: the "
        "best of many looks better than it is.",
        "Gain: the ratio of the two means (geometric ones where all scores are above zero) minus 1, with its "
        "interval; above zero is better, whichever way the objective points.",
        "Time lines count the seconds of trials alone; pauses of a study that was resumed are left out.",
        "Distribution of scores: what a search tried is no random sample of all configurations.",
    ]
    if any(trial.state is TrialState.PRUNED for trial in trials):
        notes.append(
            "Abandoned trials: the load was ended as soon as the configuration was worse than the best so "
            "far by more than the noise of readings and runs explains, by a test that is made for repeated "
            "looks. Their scores are of the readings until then. Load saved: against a trial's usual load."
        )
    if not any(trial.state is TrialState.COMPLETE for trial in trials):
        notes = notes[:2]
    return tag("ul", *(tag("li", note) for note in notes))
