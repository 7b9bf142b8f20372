"""What a session's load runs on: the study's target, made, filled and settled, or this machine as it is."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ascar.errors import StudyError
from ascar.space import Configuration
from ascar.systems import open_target, system_of
from ascar.systems.asking import apply_checked, settle_checked
from ascar.workloads import open_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.capes.session.study import OnlineStudy
    from ascar.systems import Target
    from ascar.workloads import Workload
    from ascar.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RequestedEnvironment:
    """What the study asks for, checked; nothing is touched.

    Attributes:
        target: None: this machine as it is.
        workload: None: whatever runs.
    """

    target: Target | None
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
        kind = cast("type[Target]", system_of(study.target))
        if not kind.on_machine:
            raise StudyError(
                f"target.kind = {study.target.get('kind')!r}: exists on paper only; a session tunes a system "
                "of this machine or, without a [target], this machine as it is"
            )
        target = open_target(kind.for_session(study.target))
        return cls(target, open_workload(study.workload or {}, target.default_workload))


@dataclass(frozen=True, slots=True)
class LoadEnvironment:
    """Where the load runs.

    Attributes:
        device: the kernel's name of the target's device; None: there is no target.
        workspace: filled; None likewise.
        goes_along: whether the device is made for the session, and goes with it.
    """

    device: str | None = None
    workspace: Workspace | None = None
    goes_along: bool = False

    def is_of(self, knob: str) -> bool:
        """Whether a knob is one of a device that goes with the session."""
        return self.goes_along and self.device is not None and f".{self.device}." in f".{knob}."


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
        tell("putting the target into its initial state")
        whole = target.space.default()
        kept = Configuration({name: whole[name] for name in whole if name not in target.left_to_agent})
        change = apply_checked(target, kept)
        if not change.filled:
            tell("filling it")
            workload.prepare(target.workspace)
        settle_checked(target)
        yield LoadEnvironment(target.device, target.workspace, target.takes_device_along)
