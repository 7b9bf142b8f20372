"""Commands whose modules are imported when they run, so that `ascar --help` and errors come at once."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name; each is imported when it is asked for.

    The module `ascar.cli.NAME` holds the command NAME: as its function NAME, with the end of its help page in
    EXAMPLES, or as `app` where NAME is a group.
    """

    def __init__(self, summaries: Mapping[str, str]) -> None:
        self.summaries = summaries
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            summary = self.summaries[name]
            module = importlib.import_module(f"ascar.cli.{name}")
            app = getattr(module, "app", None)
            if app is None:
                app = typer.Typer(rich_markup_mode=None, add_completion=False)
                app.command(name, epilog=module.EXAMPLES, short_help=summary)(getattr(module, name))
            self._loaded[name] = typer.main.get_command(app)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.summaries)

    def __len__(self) -> int:
        return len(self.summaries)


class LazyGroup(TyperGroup):
    """A group that lists its commands without importing them.

    Attributes:
        summaries: the commands in the order of the help page, each with its line there.
    """

    summaries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(self.summaries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the list of commands from the summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))
