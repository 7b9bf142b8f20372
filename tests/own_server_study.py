"""What a study of a server of its own does by the commands, whichever server that is."""

from __future__ import annotations

import random
import signal
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from ascar.errors import EnvironmentLacks
from howtos import followed
from own_servers import end_at_a_moment, nothing_is_left, server_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascar.program.account import Account


class OwnServerStudy(ABC):
    """A study is tuned, exported, interrupted, killed; nothing is left. A subclass says of which server.

    Attributes:
        kind: the kind of the target.
        text: the study; PLACE stands for the directory of the server.
        program: what the command lines of its processes have in them.
        smaller: lines of the study that `ascar init` writes, and what makes its data smaller.
        searched: parameters of the best configuration.
        forms: what it is exported as.
        packages: what the doctor names.
        of_example: a parameter of the study in `examples`.
        ends: how many studies are ended.
        ends_within_s: the longest time after which one is.
    """

    kind: ClassVar[str]
    text: ClassVar[str]
    program: ClassVar[str]
    smaller: ClassVar[dict[str, str]] = {}
    searched: ClassVar[tuple[str, ...]]
    forms: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]]
    of_example: ClassVar[str]
    ends: ClassVar[int] = 3
    ends_within_s: ClassVar[float]

    @staticmethod
    @abstractmethod
    def account() -> Account:
        """Whom the server runs as.

        Raises:
            EnvironmentLacks: it is not installed, or has no account.
        """

    @pytest.fixture
    def place(self) -> Iterator[Path]:
        try:
            account = self.account()
        except EnvironmentLacks as lack:
            pytest.skip(str(lack))
        with server_place(account, f"ascar-{self.kind}-") as folder:
            yield Path(folder)

    @pytest.fixture
    def study(self, place: Path, tmp_path: Path) -> Path:
        path = tmp_path / "study.toml"
        path.write_text(self.text.replace("PLACE", str(place)))
        return path

    @pytest.mark.slow
    def test_what_the_how_to_begins_with_tunes_and_exports_and_nothing_is_left(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        changes = {'#directory = "..."': f'directory = "{place}"', **self.smaller}
        assert followed(ascar, self.kind, changes) == ["init", "check", "tune", "export"]
        assert nothing_is_left(place, self.program)
        outcome = ascar("history", "show", self.kind, "--json").document["outcome"]
        assert outcome["counts"]["complete"] >= 2
        assert set(outcome["best"]["configuration"]) >= set(self.searched)
        for form in self.forms:
            exported = ascar("export", self.kind, "--as", form, "--json").document
            assert len(exported["lines"]) >= len(exported["chosen"])

    @pytest.mark.slow
    def test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(
        self, place: Path, study: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        for turn in range(self.ends):
            number = signal.SIGINT if turn == 0 else signal.SIGKILL
            end_at_a_moment(study, chance, self.ends_within_s, number)
            assert nothing_is_left(place, self.program), turn

    def fails_one_that_fills_the_disk(
        self, ascar: Callable[..., Any], small: Path, study: Path, complete: int, told: str
    ) -> None:
        """See that a study on a small volume fails the trials that fill it, says why, and goes on."""
        tuned = ascar("tune", study, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["failed"] >= 1, tuned.err
        assert tuned.document["counts"]["complete"] >= complete, tuned.err
        assert told in tuned.err
        assert nothing_is_left(small, self.program)

    def test_the_doctor_names_the_packages(self, ascar: Callable[..., Any]) -> None:
        text = str(ascar("doctor", "--json").document)
        assert all(package in text for package in self.packages)

    def test_the_example_is_a_study(self, ascar: Callable[..., Any]) -> None:
        example = Path(__file__).parents[1] / "examples" / f"{self.kind}.toml"
        shown = ascar("space", example, "--json")
        if "not installed" in shown.err or "no account" in shown.err:
            pytest.skip(shown.error)
        assert shown.status == 0, shown.err
        assert self.of_example in str(shown.document)
