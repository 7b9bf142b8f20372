"""What a session's load runs on: the study's target, made, filled and settled, or this machine as it is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import StudyError
from ascar.space import Configuration
from ascar.systems import open_target
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.recipe import KNOBS
from ascar.workloads import open_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.capes.session.study import OnlineStudy
    from ascar.workloads import Workload
    from ascar.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RequestedEnvironment:
    """What the study asks for, checked; nothing is touched.

    Attributes:
        target: None: this machine as it is.
        workload: None: whatever runs.
    """

    target: LocalFileSystem | None
    workload: Workload | None

    @classmethod
    def of(cls, study: OnlineStudy) -> RequestedEnvironment:
        """Open both.

        Raises:
            StudyError: a key is wrong.
            EnvironmentLacks: a program is missing.
        """
        if study.target is None:
            return cls(None, None)
        # The device's caches are forgotten by unmounting it; those of the machine are nobody's to drop here.
        target = open_target({"machine_wide": False, **study.target})
        if not isinstance(target, LocalFileSystem):
            raise StudyError(
                f"target.kind = {study.target.get('kind')!r}: a session tunes 'localfs', or, without a "
                "[target], this machine as it is"
            )
        return cls(target, open_workload(study.workload or {}, target.default_workload))


@dataclass(frozen=True, slots=True)
class LoadEnvironment:
    """Where the load runs.

    Attributes:
        device: the kernel's name of the target's device; None: there is no target.
        workspace: filled; None likewise.
        is_image: whether the device is made for the session, and goes with it.
    """

    device: str | None = None
    workspace: Workspace | None = None
    is_image: bool = False

    def is_of(self, knob: str) -> bool:
        """Whether a knob is one of a device that goes with the session."""
        return self.is_image and self.device is not None and f".{self.device}." in f".{knob}."


@contextmanager
def prepared(requested: RequestedEnvironment, tell: Callable[[str], None]) -> Generator[LoadEnvironment]:
    """The environment, made and filled; put back when it is left.

    Knobs that can be turned at any time are left as they are: they are the agent's.

    Args:
        requested: the environment that the study requests.
        tell: hears what is being done.

    Raises:
        AscarError: as of the target and the load.
    """
    target, workload = requested.target, requested.workload
    if target is None or workload is None:
        yield LoadEnvironment()
        return
    with target:
        tell("making the file system")
        whole = target.space.default()
        change = target.apply(Configuration({name: whole[name] for name in whole if name not in KNOBS}))
        if not change.filled:
            tell("filling it")
            workload.prepare(target.workspace)
        target.settle()
        is_image = target.settings.options.device is None
        yield LoadEnvironment(str(target.describe()["device"]["name"]), target.workspace, is_image)
