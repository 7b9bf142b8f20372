"""`ascar check`: a study tried out before it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import AllowLive, FormatDevices, Json, Quiet, StudyFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console
    from rich.table import Table

    from ascar.capes.session.study import OnlineStudy
    from ascar.checking import CheckProgress
    from ascar.results.check import CheckedParameter, CheckResult
    from ascar.study import Study

EXAMPLES = examples(
    "ascar check study.toml",
    "ascar check study.toml --json | jq -r '.problems[]'",
)


def check(
    study: StudyFile,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Try a study out: run its load once, and set, read back and put back every parameter once.

    It prints every statement that a change takes, and says what is missing. At the end everything is put
    back. The load runs for at most 3 seconds, unless its program takes longer. Of a study with an [online]
    table it tries what a session would use: the message server, the processes' files, every collector, every
    metric, and the parameters that the session would set.

    Exit status: 0 everything works, 1 something does not, 2 something in the study is wrong and nothing was
    touched.
    """
    from ascar.cli.studies import Confirmed, is_online, read_online_study, read_study

    online = is_online(study)
    confirmed = Confirmed(format_device, allow_live)
    wanted = read_online_study(study, confirmed) if online else read_study(study, None, confirmed)
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people
    from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
    from ascar.cli.statuses import DONE, FAILED

    try:
        with progress_line(_line, first_s=AFTER_TWO_SECONDS, quiet=quiet) as listener:
            found = _checked(wanted, listener)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; everything was put back") from None
    if json:
        emit("check", found)
    else:
        _print(people(), found, sorted(wanted.objective.formula.names))
    return DONE if found.works else FAILED


def _checked(study: Study | OnlineStudy, listener: Callable[[CheckProgress], None]) -> CheckResult:
    from ascar.study import Study

    if isinstance(study, Study):
        from ascar.checking import check_study

        return check_study(study, listener)
    from ascar.capes.session.checking import check_session

    return check_session(study, listener)


def _line(progress: CheckProgress) -> str:
    from ascar.render import duration

    left = ""
    if progress.done:
        left = f", {duration(progress.elapsed_s / progress.done * (progress.steps - progress.done))} left"
    return f"{progress.done} of {progress.steps} steps{left}: {progress.doing}"


def _print(console: Console, found: CheckResult, scored: Sequence[str]) -> None:
    from ascar.render import count, number

    if found.load_metrics:
        shown = ", ".join(f"{name} {number(found.load_metrics.get(name))}" for name in scored)
        metrics = count(len(found.load_metrics), "metric")
        console.print(f"load: {shown}; {metrics} in all (--json)", soft_wrap=True, markup=False)
    if found.sample:
        console.print(f"system: {count(len(found.sample), 'counter')} (--json)", soft_wrap=True, markup=False)
    if found.parameters:
        console.print(_table(found.parameters))
    for command in [command for one in found.parameters for command in one.commands]:
        console.print(f"  {command}", soft_wrap=True, markup=False, highlight=False)
    if found.statements:
        console.print("statements that the study may issue:")
    for statement in found.statements:
        console.print(f"  {statement}", soft_wrap=True, markup=False, highlight=False)
    if found.rights:
        console.print("rights that it needs:")
    for right in found.rights:
        console.print(f"  {right}", soft_wrap=True, markup=False, highlight=False)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)
    for need in found.missing:
        get = f"package {need.debian_package}" if need.debian_package else need.remedy
        console.print(f"missing: {need.name} ({need.purpose}): {get}", soft_wrap=True, markup=False)
    for problem in found.problems:
        console.print(f"problem: {problem}", style="red", soft_wrap=True, markup=False)
    if found.works:
        console.print("everything works, and everything was put back")


def _table(parameters: Sequence[CheckedParameter]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from ascar.render import plain, seconds

    table = Table(box=None, pad_edge=False)
    for heading in ("parameter", "default", "tried", "read back", "change", ""):
        table.add_column(heading)
    for one in parameters:
        said = one.problem or ("the study leaves no other value" if one.tried is None else "")
        table.add_row(
            one.parameter,
            *(
                Text("" if value is None else plain(value))
                for value in (one.before, one.tried, one.read_back)
            ),
            "" if one.seconds is None else seconds(one.seconds),
            Text(said, style="red" if one.problem else "dim"),
        )
    return table
