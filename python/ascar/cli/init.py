"""`ascar init`: a commented study file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Force, Json, Online, OutOrNone

EXAMPLES = examples(
    "ascar init localfs",
    "ascar init sqlite --out study.toml",
    "ascar init simulated --out - | less",
    "ascar init linux --online      a study of `ascar capes up`, for this machine as it is",
)


def _targets(incomplete: str) -> list[str]:
    from ascar.extension import kinds

    return [kind for kind in kinds("ascar.systems") if kind.startswith(incomplete)]


def init(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="The kind of the target; `ascar doctor` lists them.",
            autocompletion=_targets,
        ),
    ],
    online: Online = False,
    out: OutOrNone = None,
    force: Force = False,
    json: Json = False,
) -> int:
    """Write a commented study file for a target: every key there is, with its meaning and default."""
    from ascar.cli.file_output import write_new
    from ascar.cli.output import emit, people
    from ascar.results.tuning import InitResult

    if online:
        from ascar.starter.online import online_study_text as text_of
    else:
        from ascar.starter.offline import study_text as text_of

    text = text_of(target)
    path = out or Path(f"{target}.toml")
    if str(path) != "-":
        write_new(path, text, force=force)
    elif not json:
        people().out(text, end="")
        return 0
    if json:
        emit("init", InitResult(target=target, file=None if str(path) == "-" else str(path), text=text))
    else:
        command = "capes up" if online else "tune"
        people().print(f"{path}: edit it, then run `ascar {command} {path}`", soft_wrap=True, markup=False)
    return 0
