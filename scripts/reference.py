"""Writes docs/reference and docs/schemas (those of messages) from the code, so that they say what it does.

`python scripts/reference.py` writes the pages, with --check it says whether they are up to date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import ascard_schemas
import module_page
import msgspec
import python_page
import scenario_page
import typer
from command_help import described_by, examples_of, purpose_of, usage_of

from ascar import errors, nodes
from ascar.capes.session.study import (
    OnlineSection,
    OnlineStudySection,
    ProofSection,
)
from ascar.cli.app import app
from ascar.cli.statuses import MEANINGS, WITHOUT_DECISION
from ascar.extension import kinds, load
from ascar.nodes.ssh import SshNode
from ascar.space import PRESETS, ChangeCost, Choices, Guarantee, preset, study_table, tables
from ascar.space.parameter import value_text
from ascar.starter.keys import keys_of, options_of
from ascar.study import (
    GuardSection,
    MeasurementSection,
    RecommendSection,
    StartSection,
    StopSection,
    StudySection,
    VerifySection,
)
from ascar.testbed import agents as testbed_agents
from ascar.testbed import file as testbed_file
from ascar.testbed import kernel_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascar.space import Parameter, Space
    from ascar.space.guarantee import Weaker

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "reference"
_EXISTING = {"server": "existing"}
NOTE = "<!-- Made from the code by scripts/reference.py; `make docs` makes it again. -->\n\n"


# Commands.


def commands_page() -> str:
    """Every command with its arguments, options and examples."""
    root: Any = typer.main.get_command(app)
    parts = ["# Commands\n", f"{purpose_of(root)}\n"]
    for path, command in _walk("ascar", root):
        parts.append(f"## {path}\n")
        parts.append(f"{purpose_of(command)}\n")
        parts.append(f"    {path} {' '.join(usage_of(command))}\n")
        parts += _parameters(command)
        parts += _examples(command)
    return NOTE + "\n".join(parts)


def _walk(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


def _parameters(command: Any) -> Iterator[str]:
    rows = [
        (f"`{names}`", said if default is None else f"{said} (default: `{default}`)")
        for names, said, default in described_by(command)
    ]
    if rows:
        yield _table(("argument or option", "meaning"), rows)


def _examples(command: Any) -> Iterator[str]:
    lines = examples_of(command)
    if lines:
        yield "\n".join(f"    {line}" for line in lines) + "\n"


# The study file.


def study_page() -> str:
    """Every key of a study file."""
    parts = [
        "# The study file\n",
        "TOML. `ascar init TARGET` writes one with every key explained; unknown keys are refused. Durations "
        "are text such as `10 min`, `1.5 h`, `250 ms`; sizes such as `2100 MiB`, `4k`.\n",
    ]
    for name, section in (
        ("study", StudySection),
        ("measurement", MeasurementSection),
        ("start", StartSection),
        ("stop", StopSection),
        ("verify", VerifySection),
        ("recommend", RecommendSection),
        ("guard", GuardSection),
    ):
        parts.append(f"## [{name}]\n")
        parts.append(_keys(section))
    for name, group, default in (
        ("target", "ascar.systems", "localfs"),
        ("workload", "ascar.workloads", "the target's own"),
        ("optimizer", "ascar.optimizers", "auto"),
    ):
        parts.append(f"## [{name}]\n")
        parts.append(f"`kind` says which (default: {default}); the other keys are that kind's own.\n")
        for kind in kinds(group):
            parts.append(f'### [{name}] kind = "{kind}"\n')
            loaded = load(group, kind, f"{name}.kind")
            parts.append(_kind(loaded))
            if getattr(loaded, "starter", None) and (other := loaded.variant(_EXISTING)) is not loaded:
                parts.append(f'#### [{name}] kind = "{kind}", server = "existing"\n')
                parts.append(_kind(other))
            parts += [
                f"#### [[{name}.{key}]]\n\n{_keys(inner)}" for key, inner in _inner_tables(options_of(loaded))
            ]
    parts.append("## [space]\n")
    parts.append(_literal(inspect.getdoc(study_table) or ""))
    parts.append("### [space.parameters.NAME]\n")
    parts.append(_literal(inspect.getdoc(tables) or ""))
    parts.append("## [[node]]\n")
    parts.append(_literal(inspect.getdoc(nodes) or ""))
    parts.append('### [[node]] kind = "ssh"\n')
    parts.append(_keys(SshNode))
    parts.append("## A study of the online loop\n")
    parts.append(
        "`ascar capes up` reads the same file with an [online] table. It leaves [measurement], [optimizer], "
        "[start], [stop] and [verify] alone, as `ascar tune` leaves [online]. "
        "[How](../howto/capes.md).\n"
    )
    for name, section in (
        ("[study]", OnlineStudySection),
        ("[online]", OnlineSection),
        ("[online.proof]", ProofSection),
    ):
        parts.append(f"### {name} of the online loop\n")
        parts.append(_keys(section, without=("proof", "pace")))
    return NOTE + "\n".join(parts)


def testbed_page() -> str:
    """Every key of a testbed file."""
    parts = [
        "# The testbed file\n",
        "TOML; `ascar testbed up` reads it. Unknown keys are refused, and each mistake is one line that "
        "names the key. Relative paths start at the folder of the file. [How](../howto/testbed.md).\n",
        "`version` is that of the format: 1.\n",
    ]
    for name, section, inner in (
        ("[testbed]", testbed_file.TestbedSection, ()),
        ("[[node]]", testbed_file.NodeTable, ("link", "nfs", "mounts", "attach")),
        ("[node.link]", kernel_parts.LinkShape, ()),
        ("[node.nfs]", kernel_parts.NfsServer, ("exports",)),
        ("[[node.nfs.exports]]", kernel_parts.NfsExport, ()),
        ("[[node.mounts]]", kernel_parts.NfsMount, ()),
        ("[[node.attach]]", kernel_parts.RemoteDisk, ()),
        ("[[disk]]", testbed_file.DiskTable, ()),
        ("[[proxy]]", testbed_file.ProxyTable, ()),
        ("[[agent]]", testbed_agents.AgentTable, ("knobs", "windows")),
        ("[[agent.knobs]]", testbed_agents.AgentKnob, ()),
        ("[agent.windows]", testbed_agents.AgentWindows, ()),
    ):
        parts += [f"## {name}\n", _keys(section, without=inner)]
    return NOTE + "\n".join(parts)


def _kind(kind: Any) -> str:
    """A kind's own description, and its keys where it declares them."""
    text = (inspect.getdoc(inspect.getmodule(kind)) or "").partition("\n\n")[0]
    options = options_of(kind)
    return f"{' '.join(text.split())}\n" + ("" if options is None else f"\n{_keys(options)}")


def _inner_tables(options: type[msgspec.Struct] | None) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """The keys of a table that are lists of tables, with what reads those."""
    for field in () if options is None else msgspec.structs.fields(options):
        for inner in get_args(field.type):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield field.encode_name, inner


def _keys(section: type[msgspec.Struct], without: tuple[str, ...] = ()) -> str:
    """A table of its keys, but for those that are tables with a heading of their own."""
    keys = [key for key in keys_of(section) if key.name not in without]
    if not keys:
        return "No further keys.\n"
    return _table(
        ("key", "type", "default", "meaning"),
        [(f"`{key.name}`", key.kind, _default(key.default), key.meaning) for key in keys],
    )


def _default(default: str | None) -> str:
    if default is None:
        return "required"
    return f"`{default}`" if default else ""


# Spaces.


def spaces_page() -> str:
    """Every preset's parameters, and the change costs."""
    parts = [
        "# Spaces\n",
        "## Change costs\n",
        "Cao's Table 9.1. `allow_cost` in a study's `[space]` names those that the search may pay; the "
        "parameters of the others stay as they are.\n",
        _table(
            ("cost", "category", "meaning"),
            [(f"`{cost.value}`", str(cost.category), cost.description) for cost in ChangeCost],
        ),
    ]
    parts += [_space(preset(name).permit_weaker(Guarantee)) for name in PRESETS]
    return NOTE + "\n".join(parts)


def _space(space: Space) -> str:
    same = space.permit_weaker([]).count()
    parts = [
        f"## {space.name}\n",
        f"{len(space)} parameters, {space.count():,} valid configurations; {same:,} of them promise as much "
        "as the default does.\n",
        _table(
            ("parameter", "values (default first)", "active when", "change cost", "weaker values"),
            [_parameter(parameter) for parameter in space.parameters],
        ),
    ]
    if space.constraints:
        parts.append("Constraints:\n")
        parts.append("\n".join(f"- `{constraint}`" for constraint in space.constraints) + "\n")
    return "\n".join(parts)


def _parameter(parameter: Parameter) -> tuple[str, ...]:
    return (
        "<br>".join(
            part
            for part in (
                f"`{parameter.name}`",
                f"= `{parameter.native}`" if parameter.native else "",
                parameter.description,
            )
            if part
        ),
        _values(parameter),
        f"`{parameter.condition}`" if parameter.condition else "",
        f"`{parameter.cost.value}`",
        "; ".join(
            f"`{_covered(label)}`: {', '.join(sorted(label.guarantees))}" for label in parameter.weaker
        ),
    )


def _values(parameter: Parameter) -> str:
    if not isinstance(parameter.domain, Choices):
        return f"`{value_text(parameter.default)}`; {parameter.domain}"
    others = [value for value in parameter.domain.values if value != parameter.default]
    meanings = dict(parameter.special)
    return ", ".join(
        f"`{value_text(value)}`" + (f" ({meanings[value]})" if value in meanings else "")
        for value in (parameter.default, *others)
    )


def _covered(label: Weaker) -> str:
    """The values that a label is about."""
    value = f"{label.value:g}" if isinstance(label.value, float) else value_text(label.value)
    return value if label.relation == "==" else f"{label.relation}{value}"


# Errors.


def errors_page() -> str:
    """The error tree, exit statuses, and where each comes from."""
    rows = [
        (
            f"`{name}`",
            str(getattr(errors, name).exit_status),
            (inspect.getdoc(getattr(errors, name)) or "").split("\n")[0],
        )
        for name, value in sorted(vars(errors).items())
        if inspect.isclass(value)
    ]
    parts = [
        "# Exit statuses and errors\n",
        _table(
            ("status", "meaning"),
            [(str(status), meaning) for status, meaning in MEANINGS.items()],
        ),
        "Status 3 keeps what was measured. Scripts read the key of the JSON document that says why.\n",
        _table(
            ("command", "ends with 3 when", "key"),
            [(f"`{name}`", when, f"`{key}`") for name, (when, key) in WITHOUT_DECISION.items()],
        ),
        "A failing command leaves one line on stderr, `error: ...`. With `--json` stdout has one document "
        "all the same, of the schema that `ascar schema error` prints, in place of the command's own. Its "
        "`kind` is one of these, `UsageError`, `Interrupted`, `NoSpace`, or the class of an exception "
        "that nobody expected, whose traceback is in the file that the message names.\n",
        _table(("kind", "exit status", "meaning"), rows),
    ]
    return NOTE + "\n".join(parts)


# Markdown.


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"

    headings = list(headings)
    return "\n".join([line(headings), line("---" for _ in headings), *map(line, rows)]) + "\n"


def _literal(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines()) + "\n"


def pages() -> dict[Path, str]:
    """Every page by its path."""
    made = {
        DIRECTORY / "commands.md": commands_page(),
        DIRECTORY / "study-file.md": study_page(),
        DIRECTORY / "scenario-file.md": NOTE + scenario_page.page(_table),
        DIRECTORY / "testbed-file.md": testbed_page(),
        DIRECTORY / "spaces.md": spaces_page(),
        DIRECTORY / "errors.md": errors_page(),
        DIRECTORY / "python.md": NOTE + python_page.page(),
        DIRECTORY / "modules.md": NOTE + module_page.page(DIRECTORY.parents[1], _table),
        scenario_page.STUB: scenario_page.stub(),
    }
    return made | ascard_schemas.pages()


def main() -> int:
    """Write the pages, or with --check compare them."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        sys.stdout.writelines(f"{path} is out of date: run `make docs`\n" for path in stale)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages()[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
