"""What a session tunes and what runs on it: the study's target, and its load or whatever runs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ascar.capes.session.parameters import SessionParameter, session_parameters
from ascar.errors import StudyError
from ascar.space import Configuration, Space, study_space
from ascar.systems import Adopting, Target, open_target, system_of
from ascar.systems.adapter import Adapter, AdapterServer, in_force
from ascar.systems.asking import apply_checked, entering, sample_checked, settle_checked
from ascar.workloads import open_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from ascar.capes.session.study import OnlineStudy
    from ascar.workloads import Workload
    from ascar.workspace import Workspace

ADAPTER = "system.sock"
"""In the session's folder: where the agent reaches the system."""


@dataclass(frozen=True, slots=True)
class RequestedEnvironment:
    """What the study asks for, checked; nothing is touched.

    Attributes:
        study: the study.
        target: the target, not yet entered.
        workload: None: whatever runs.
    """

    study: OnlineStudy
    target: Target
    workload: Workload | None

    @classmethod
    def of(cls, study: OnlineStudy) -> RequestedEnvironment:
        """Open both.

        Raises:
            InputError: a key is wrong.
            EnvironmentLacks: a program is missing.
        """
        if "node" in study.target:
            raise StudyError(
                "target.node: a session tunes another machine by an agent there; docs/howto/several-nodes.md "
                "shows how"
            )
        kind = cast("type[Target]", system_of(study.target))
        if not kind.on_machine:
            raise StudyError(
                f"target.kind = {study.target.get('kind')!r}: exists on paper only; a session tunes a system "
                "of this machine: write another kind that `ascar doctor` lists"
            )
        target = open_target(kind.for_session(study.target))
        space = study_space(study, target.space)
        for name in study.guard.pace:
            if name not in space:
                raise StudyError(
                    f"guard.pace.{name}: no such parameter; there are {', '.join(space.names[:10])}"
                )
        session_parameters(target, space, DEVICE_LATER if target.takes_device_along else target.device)
        if study.workload is None and target.default_workload is None:
            return cls(study, target, None)
        given = study.workload or {}
        return cls(study, target, open_workload(given, target.default_workload, target.workloads))


DEVICE_LATER = "DEVICE"
"""In place of the name of a device that the target makes when it is entered."""


@dataclass(frozen=True, slots=True)
class LoadEnvironment:
    """What is tuned, and where the load runs.

    Attributes:
        space: the space of the study on this machine.
        parameters: the parameters that the session sets.
        kind: the kind of the target.
        device: the kernel's name of the target's device; None: there is none.
        workspace: filled; None: there is no load.
        goes_along: whether the device is made for the session, and goes with it.
        has_adapter: whether the system sets parameters of its own.
        tells: whether the system tells counters or gauges.
    """

    space: Space
    parameters: tuple[SessionParameter, ...]
    kind: str
    device: str | None = None
    workspace: Workspace | None = None
    goes_along: bool = False
    has_adapter: bool = False
    tells: bool = False

    def is_of(self, key: str) -> bool:
        """Whether a setting is one of a device that goes with the session."""
        return self.goes_along and self.device is not None and f".{self.device}." in f".{key}."


@contextmanager
def prepared(
    requested: RequestedEnvironment, folder: Path, tell: Callable[[str], None]
) -> Generator[LoadEnvironment]:
    """The environment, made and filled; put back when it is left.

    A system that works already keeps its values. Settings of the kernel are the agent's to set.

    Args:
        requested: the environment that the study requests.
        folder: the session's folder.
        tell: hears what is being done.

    Raises:
        AscarError: as of the target and the load.
    """
    study, target, workload = requested.study, requested.target, requested.workload
    with ExitStack() as held:
        held.enter_context(entering(target))
        space = study_space(study, target.space)
        if isinstance(target, Adopting):
            target.adopt(space)
        parameters = session_parameters(target, space, target.device or study.target.get("device"))
        workspace: Workspace | None = None
        if workload is None:
            configuration = in_force(target, space)
        else:
            tell("putting the target into its initial state")
            configuration = space.default()
            kept = {one.parameter.name for one in parameters if one.of_kernel} | target.left_to_agent
            wanted = {name: value for name, value in configuration.items() if name not in kept}
            change = apply_checked(target, Configuration(wanted))
            if not change.filled:
                tell("filling it")
                workload.prepare(target.workspace)
            settle_checked(target)
            workspace = target.workspace
        sample = sample_checked(target)
        has_adapter = not all(one.of_kernel for one in parameters)
        tells = bool(sample.counters or sample.gauges)
        if has_adapter or tells:
            held.enter_context(AdapterServer(Adapter(target, space, configuration), folder / ADAPTER))
        yield LoadEnvironment(
            space=space,
            parameters=parameters,
            kind=str(study.target.get("kind", "")),
            device=target.device or study.target.get("device"),
            workspace=workspace,
            goes_along=target.takes_device_along,
            has_adapter=has_adapter,
            tells=tells,
        )
