"""What puts a configuration in force, in an administrator's words; and what of it ascar can do itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.errors import AscarError
from ascar.quoting import comment, shell_line
from ascar.results.machine import UNKNOWN, AppliedSetting, LeftToUser
from ascar.systems import Placement
from ascar.systems.program.asked import ProgramCommands
from ascar.systems.program.files import SettingsFile, files_of
from ascar.systems.program.placeholders import command_of, filled, names_in, texts_of
from ascar.systems.program.wiring import Wiring, restart_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ascar.space import Configuration, Space
    from ascar.systems.program.options import FileSection, ProgramOptions

_DIRECTORY = "DIRECTORY"


def lines_of(
    options: ProgramOptions, space: Space, configuration: Configuration, chosen: Collection[str]
) -> list[str]:
    """Lines of a shell, of the parameters that are chosen."""
    if options.command:
        return []
    wiring = Wiring.of(options, files_of(options.file), space)
    values = {**texts_of(configuration, options.booleans), "directory": _DIRECTORY, "pid": "PID"}
    named = [name for name in chosen if name in values]
    lines = [*_file_lines(options, values, named)]
    cost = wiring.needs_restart(named, space)
    if options.start and cost is not None and cost.category > 0:
        lines.append(start_line(options, values))
    else:
        way = None if cost is None else restart_of(cost, options)
        if way is not None and way[0] == "restart":
            lines.append(shell_line(command_of(options.restart[way[1]], values)))
        elif way is not None:
            user = ["--user"] if options.service_of == "user" else []
            lines.append(shell_line(["systemctl", *user, way[1], options.service]))
    return [*lines, *_apply_lines(options, wiring, space, (values, named))]


def start_line(options: ProgramOptions, values: Mapping[str, str]) -> str:
    """The command that starts the program, with its variables."""
    variables = {name: filled(text, values) for name, text in options.environment.items()}
    before = [f"{name}={text}" for name, text in variables.items() if text is not None]
    return shell_line([*(["env", *before] if before else []), *command_of(options.start, values)])


def placement_of(options: ProgramOptions, space: Space, configuration: Configuration) -> Placement:
    """What ascar can put in force, to stay: files of the user's own, and what `apply` sets."""
    chosen = space.departures(configuration)
    if not chosen:
        return Placement()
    if options.command:
        return Placement.by_hand(chosen, ())
    files = files_of(options.file)
    wiring = Wiring.of(options, files, space)
    values = texts_of(configuration, options.booleans)
    settings: dict[str, AppliedSetting] = {}
    for file in files:
        if not file.is_ours:
            held = set(chosen) & file.names(space.names)
            try:
                before = file.told(held, Path("/"))
            except AscarError:
                before = {}
            for name in sorted(held - wiring.started):
                key = file.places([name]).get(name, (name, ""))[0]
                path = str(file.path(Path("/")))
                settings[name] = AppliedSetting(name, key, path, before.get(name, UNKNOWN), values[name])
    applied = [name for name in chosen if name in wiring.applied and not options.start]
    told = _told(options, space, wiring, applied)
    for name in applied:
        native, before = space[name].native or name, told.get(name, UNKNOWN)
        settings[name] = AppliedSetting(name, native, "target.apply", before, values[name])
    left = tuple(name for name in chosen if name not in settings)
    lines = tuple(lines_of(options, space, configuration, left)) if left else ()
    why = "they are words of the command that starts the program" if options.start else "give these commands"
    return Placement(tuple(settings.values()), (LeftToUser(left, why, lines),) if left else ())


def _told(options: ProgramOptions, space: Space, wiring: Wiring, names: Collection[str]) -> Mapping[str, str]:
    """What `check` says is in force; nothing where it cannot be asked."""
    if not options.check or not names:
        return {}
    try:
        return ProgramCommands(options, space).checked(names, wiring.by_name, {})
    except AscarError:
        return {}


def _file_lines(options: ProgramOptions, values: Mapping[str, str], named: Collection[str]) -> Iterator[str]:
    for file in options.file:
        path = file.path.replace("{directory}", _DIRECTORY, 1)
        for key, template in file.keys.items():
            if names_in(str(template)) & set(named) and (text := filled(str(template), values)) is not None:
                yield comment(f"in {path}: {key} = {text}")
        told = [name for name in named if name in file_of_template(file).names(named)]
        if told:
            values_told = ", ".join(f"{name} = {values[name]}" for name in told)
            yield comment(f"{path} is {file.template} with {values_told}")


def file_of_template(section: FileSection) -> SettingsFile:
    """A file without its keys: what the template alone names."""
    return SettingsFile(replace(section, keys={}), "target.file")


def _apply_lines(
    options: ProgramOptions, wiring: Wiring, space: Space, given: tuple[Mapping[str, str], Collection[str]]
) -> Iterator[str]:
    values, named = given
    wanted = [name for name in named if name in wiring.applied]
    if wanted and not wiring.by_name:
        yield shell_line(command_of(options.apply, values))
        return
    for name in wanted:
        own = {"name": space[name].native or name, "value": values[name]}
        yield shell_line(command_of(options.apply, {**values, **own}))
