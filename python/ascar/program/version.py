"""The version of a system's programs that is installed."""

from __future__ import annotations

from dataclasses import dataclass

from ascar.errors import EnvironmentLacks


@dataclass(frozen=True, slots=True)
class InstalledVersion:
    """Programs of one version; a system says which they are.

    Attributes:
        version: the version as one of them says it, such as "16.2.15".
    """

    version: str

    @property
    def number(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    def check_major(self, major: int | None) -> None:
        """See that it is the major version that a study asks for; None: it asks for none.

        Raises:
            EnvironmentLacks: it is another one.
        """
        if major not in (None, self.number[0]):
            raise EnvironmentLacks(
                f"target.version = {major}: must be one of the versions that are installed: "
                f"{self.number[0]} ({self.version})"
            )

    def check_from(self, name: str, least: tuple[int, int]) -> None:
        """See that it is not too old.

        Args:
            name: what people call the system.
            least: the oldest version that ascar tunes.

        Raises:
            EnvironmentLacks: it is older.
        """
        if self.number < least:
            since = ".".join(map(str, least))
            raise EnvironmentLacks(f"{name} {self.version} is too old; ascar tunes versions from {since} on")
