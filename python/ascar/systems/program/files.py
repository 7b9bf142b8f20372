"""The files that hold a program's settings: what each has to say under a configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import InputError, StageFailed, StudyError
from ascar.small_file import SmallFile
from ascar.systems.program.file_keys import key_in, with_key
from ascar.systems.program.placeholders import filled, names_in, pattern_of, template_filled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.space import Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.program.options import FileSection

FILE_BYTES_MAX = 512 * 1024
_TYPED = ("json", "toml")
_CODEC = ("utf-8", "surrogateescape")


class SettingsFile:
    """A file of `[[target.file]]`.

    Args:
        section: its keys.
        key: their key in the study, for errors.
    """

    def __init__(self, section: FileSection, key: str) -> None:
        self.section, self.key = section, key
        self._base: str | None = None
        self._written: bytes | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is in the directory that ascar makes."""
        return self.section.path.startswith("{directory}/")

    def names(self, known: Collection[str]) -> set[str]:
        """The parameters that it holds.

        Raises:
            StudyError: the template cannot be read.
        """
        found = {name for value in self.section.keys.values() for name in names_in(str(value))}
        if self.section.template is not None:
            found |= names_in(self._template()) & set(known)
        return found

    def path(self, directory: Path) -> Path:
        """Where it is."""
        return Path(self.section.path.replace("{directory}", str(directory), 1)).absolute()

    def write(
        self,
        values: Mapping[str, str],
        natural: Mapping[str, Value],
        known: Collection[str],
        at: tuple[Path, Keeper],
    ) -> bool:
        """Give the file the values; True where that changes it.

        Args:
            values: the values as they are written, by parameter.
            natural: the values themselves, for formats that know numbers.
            known: all parameters.
            at: the directory that ascar makes, and the keeper.

        Raises:
            StageFailed: a key cannot be set, or somebody else has changed the file meanwhile.
            Refused: the file is somebody else's.
        """
        directory, keeper = at
        path = self.path(directory)
        present = self._present(path)
        if self._written is not None and present != self._written:
            raise StageFailed(
                "change",
                f"{path}: another program has changed it during the study; leave it alone until the end",
            )
        content = self.content(present, values, natural, known).encode(*_CODEC)
        if content == present:
            return False
        try:
            keeper.file_replace(path, content)
        except InputError as error:
            raise StageFailed("change", f"{self.key}: {error.message}") from error
        self._written = content
        return True

    def content(
        self,
        present: bytes | None,
        values: Mapping[str, str],
        natural: Mapping[str, Value],
        known: Collection[str],
    ) -> str:
        """What the file has to say.

        Raises:
            StageFailed: a key cannot be set, or the file is not there.
        """
        if self._base is None:
            if self.section.template is not None:
                self._base = self._template()
            elif present is None:
                raise StageFailed(
                    "change", f"{self.key}.path: no such file; name a `template` to make it from"
                )
            else:
                self._base = present.decode(*_CODEC)
        text = self._base
        if self.section.template is not None:
            text = template_filled(text, values, known)
        for name, template in self.section.keys.items():
            value = _value(template, values, natural if self.section.form in _TYPED else {})
            if value is None:
                continue
            try:
                text = with_key(self.section.form, text, name, value)
            except ValueError as error:
                raise StageFailed("change", f"{self.key}.keys.{name}: {self.section.path}: {error}") from None
        return text

    def told(self, names: Collection[str], directory: Path) -> dict[str, str]:
        """The values that the file tells now, as text, of those parameters that it tells alone in a key."""
        found: dict[str, str] = {}
        wanted = self.places(names)
        if not wanted:
            return found
        present = self._present(self.path(directory))
        if present is None:
            return found
        text = present.decode(*_CODEC)
        for parameter, (name, template) in wanted.items():
            pattern = pattern_of(template)
            try:
                value = key_in(self.section.form, text, name)
            except ValueError as error:
                raise StageFailed("change", f"{self.key}: {self.section.path}: {error}") from None
            match = None if pattern is None or value is None else pattern.fullmatch(value)
            if match is not None:
                found[parameter] = match[1]
        return found

    def places(self, names: Collection[str]) -> dict[str, tuple[str, str]]:
        """The key that tells a parameter, and the text around the value, by parameter."""
        return {
            parameter: (name, template)
            for name, template in self.section.keys.items()
            if isinstance(template, str)
            for parameter in sorted(names_in(template) & set(names))
        }

    def _template(self) -> str:
        assert self.section.template is not None
        path = Path(self.section.template)
        what = f"{self.key}.template = {self.section.template!r:.200}"
        read = SmallFile(path, what, FILE_BYTES_MAX, "name a file that can be read", StudyError)
        return read.content().decode(*_CODEC)

    def _present(self, path: Path) -> bytes | None:
        if not path.exists():
            return None
        try:
            return SmallFile(path, f"{self.key}.path = {str(path)!r:.200}", FILE_BYTES_MAX).content()
        except InputError as error:
            raise StageFailed("change", error.message) from error


def _value(template: Value, values: Mapping[str, str], natural: Mapping[str, Value]) -> Value | None:
    """The value of a key: of a parameter alone the value itself; None where the parameter does not apply."""
    if not isinstance(template, str):
        return template
    alone = re.fullmatch(r"\{(\w+)\}", template, re.ASCII)
    if alone and alone[1] in natural and not isinstance(natural[alone[1]], str):
        return natural[alone[1]]
    return filled(template, values)


def files_of(sections: Sequence[FileSection]) -> tuple[SettingsFile, ...]:
    """The files of a study."""
    return tuple(SettingsFile(section, f"target.file[{at}]") for at, section in enumerate(sections))
