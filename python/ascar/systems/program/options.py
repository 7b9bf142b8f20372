"""The keys of `[target]` of kind "program", and what they may be."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ascar.errors import StudyError
from ascar.space import ChangeCost
from ascar.systems.program.file_keys import FORMATS, format_of
from ascar.systems.program.placeholders import Booleans, Words, flat

SECONDS_MAX = 600.0
END_S_MAX = 50.0
_WORDS_MAX = 1000
_SECRET = re.compile(r"passw|secret|token|credential|api_?key", re.IGNORECASE)


class FileSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[target.file]]`: a file that holds settings.

    Attributes:
        path: the path of the file; "{directory}" stands for a directory that ascar makes and removes.
        template: a file whose text, with values for `{parameter}`, the file gets. None: the file is there,
            and keeps all but its `keys`.
        keys: the keys to set in place, and their values: a text with `{parameter}`, or a constant. Below a
            section or a table, names are joined by dots, in quotes: "server.port".
        format: how the file is written: "json", "toml", "ini", "conf" (lines of `key value`, `key = value` or
            `key value;`) or "env". None: as the path's ending tells.
    """

    path: str
    template: str | None = None
    keys: dict[str, str | bool | int | float] = {}
    format: Literal["json", "toml", "ini", "conf", "env"] | None = None

    @property
    def form(self) -> str:
        """The format; "conf" where nothing tells."""
        return self.format or format_of(self.path) or "conf"


class ProgramOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "program".

    Commands are lists of words; no shell reads them. `{parameter}` in a word stands for a value,
    "{directory}" for a directory that ascar makes and removes, "{pid}" for the process of `start`. A word
    that names a parameter which does not apply is left out; words in a list of their own are left out
    together. A word that begins with ./ is in the study's folder.

    Attributes:
        command: a program that is asked and told by lines of JSON; it takes the place of all other keys but
            `answer_s`.
        answer_s: seconds that an answer of `command` may take.
        start: a program that ascar starts in the foreground, watches and ends: a new process for each change
            that takes a restart.
        service: a unit of systemd, which is reloaded or restarted, and at the end is as it was.
        service_of: whose systemd runs the unit: that of the "system", or of the "user".
        directory: the working directory of `start` and of the commands. None: the one that ascar makes.
        environment: variables of `start` and of the commands; one that names a parameter which does not apply
            is not set.
        file: files that hold settings; see `[[target.file]]`.
        booleans: how true and false are written: "true/false", "yes/no", "on/off" or "1/0".
        apply: a command that sets values while the program runs; with `{name}` and `{value}` in it, it runs
            for each parameter that nothing else names.
        check: a command that prints the values in force, as a JSON table or as lines of `name value`; with
            `{name}` in it, it runs for each parameter that `apply` sets by name, and its last line is the
            value.
        health: a command that ends with status 0 once the program can serve.
        listen: an address at which the program accepts connections once it can serve: "127.0.0.1:6379", or
            the path of a socket.
        health_s: seconds after which a program that cannot serve has failed.
        restart: commands that take the place of a restart, by the cost of the change: "dyn-app",
            "app-restart", ...; one of a lower cost that is not named needs none.
        reset: a command that brings the program to the same state before each trial.
        reset_stopped: whether the program is stopped while `reset` runs.
        restore: a command that puts back what `apply` and `restart` have changed, after the files; it is
            written to disk, and runs with PATH as its only variable.
        command_s: seconds that a command may take.
        end_s: seconds that the program has to end before it is killed.
    """

    command: tuple[str, ...] = ()
    answer_s: float = 10.0
    start: Words = ()
    service: str = ""
    service_of: Literal["system", "user"] = "system"
    directory: str | None = None
    environment: dict[str, str] = {}
    file: tuple[FileSection, ...] = ()
    booleans: Booleans = "true/false"
    apply: Words = ()
    check: Words = ()
    health: Words = ()
    listen: str = ""
    health_s: float = 30.0
    restart: dict[str, Words] = {}
    reset: Words = ()
    reset_stopped: bool = False
    restore: Words = ()
    command_s: float = 60.0
    end_s: float = 10.0

    @property
    def commands(self) -> dict[str, Words]:
        """Every command that is given, by its key."""
        named = {key: getattr(self, key) for key in _COMMANDS}
        named |= {f"restart.{cost}": words for cost, words in self.restart.items()}
        return {key: words for key, words in named.items() if words}


_COMMANDS = ("start", "apply", "check", "health", "reset", "restore")
_OF_COMMAND = ("command", "answer_s")


def check_options(options: ProgramOptions) -> None:
    """Ranges and combinations that types cannot say.

    Raises:
        StudyError: a key is out of range, or contradicts another.
    """
    if "command" in _given(options):
        others = sorted(_given(options) - {*_OF_COMMAND})
        if others:
            raise StudyError(
                f"target.{others[0]}: is not allowed with target.command, which is told every value; leave "
                "one out"
            )
        if any("\0" in word for word in options.command):
            raise StudyError("target.command: must name a program, in words without a zero byte")
        _check_seconds("answer_s", options.answer_s, SECONDS_MAX)
        return
    if not (options.start or options.service or options.file or options.apply or options.restart):
        raise StudyError(
            "target: must say how values are put in force: by `command`, or by any of `start`, `service`, "
            "`file`, `apply` and `restart`; `ascar init program` writes an example"
        )
    for key, words in options.commands.items():
        _check_words(key, words)
    _check_process(options)
    _check_files(options.file)
    for key in ("health_s", "command_s"):
        _check_seconds(key, getattr(options, key), SECONDS_MAX)
    _check_seconds("end_s", options.end_s, END_S_MAX)
    for name, text in options.environment.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in text:
            raise StudyError(
                f"target.environment.{name[:80]!r}: must be a name of letters, digits and '_', with a text"
            )


def _given(options: ProgramOptions) -> set[str]:
    """The keys that differ from their defaults."""
    return {
        field.name
        for field in msgspec.structs.fields(options)
        if getattr(options, field.name) != (field.default if field.default is not msgspec.NODEFAULT else {})
    }


def _check_process(options: ProgramOptions) -> None:
    if options.start and options.service:
        raise StudyError("target.service: is not allowed with target.start; the program is one or the other")
    if options.service and not re.fullmatch(r"[A-Za-z0-9:_.@\\-]{1,200}", options.service):
        raise StudyError(f"target.service = {options.service!r:.80}: must be a unit, such as 'nginx.service'")
    if options.reset_stopped and not (options.reset and (options.start or options.service)):
        raise StudyError("target.reset_stopped = true: needs `reset`, and `start` or `service`")
    costs = [cost.value for cost in ChangeCost]
    for cost in options.restart:
        if cost not in costs:
            raise StudyError(f"target.restart.{cost[:80]!r}: must be one of {', '.join(costs)}")
        if options.start and ChangeCost(cost).category > 0:
            raise StudyError(f"target.restart.{cost}: ascar starts the program of `start` anew by itself")
    if options.listen and not (options.listen.startswith("/") or re.search(r":\d{1,5}$", options.listen)):
        raise StudyError(
            f"target.listen = {options.listen!r:.80}: must be HOST:PORT, or the path of a socket"
        )
    outside = options.apply or options.restart
    if outside and not (options.start or options.service or options.restore or options.check):
        raise StudyError(
            "target.restore: missing; `apply` and `restart` change what ascar does not start: give a command "
            "that puts it back, or `check`, which reads the values from before"
        )
    kept = (
        {"restore": options.restore}
        if options.start
        else {"restore": options.restore, "apply": options.apply}
    )
    for key, words in kept.items():
        for word in flat(words):
            if _SECRET.search(word):
                raise StudyError(
                    f"target.{key}: {word[:40]!r} looks like a secret, and the command is written to disk; "
                    "read it from a file, in a script of yours"
                )


def _check_files(files: tuple[FileSection, ...]) -> None:
    for at, file in enumerate(files):
        key = f"target.file[{at}]"
        if not file.path.startswith(("/", "./", "{directory}/")) or "\0" in file.path:
            raise StudyError(
                f"{key}.path = {file.path!r:.80}: must begin with /, with ./ for the study's folder, or with "
                "{directory}/"
            )
        if file.template is None and not file.keys:
            raise StudyError(f"{key}: must have a `template`, `keys`, or both")
        if file.template is None and file.path.startswith("{directory}/"):
            raise StudyError(f"{key}.template: missing; a file in {{directory}} has to be made from one")
        if file.keys and file.format is None and format_of(file.path) is None:
            raise StudyError(
                f"{key}.format: missing; {file.path!r:.80} does not tell it; must be one of "
                f"{', '.join(FORMATS)}"
            )


def _check_words(key: str, words: Words) -> None:
    every = flat(words)
    if not isinstance(words[0], str) or not words[0]:
        raise StudyError(f"target.{key} = {list(words)!r:.80}: must begin with the name of a program")
    if len(every) > _WORDS_MAX or any("\0" in word for word in every):
        raise StudyError(f"target.{key}: must be at most {_WORDS_MAX} words, none with a zero byte")


def _check_seconds(key: str, seconds: float, most: float) -> None:
    if not 0 < seconds <= most:
        raise StudyError(f"target.{key} = {seconds!r}: must be above 0, and at most {most:g}")
