"""Results of `ascar doctor`, `apply`, `confirm`, `drift`, `restore`, `export`, and of what failed."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ascar.quoting import comment, echo_line, shell_line
from ascar.results.export_form import ExportForm
from ascar.results.measurement import Count
from ascar.results.verdict import Verdict
from ascar.space import Configuration


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that a command runs on.

    Attributes:
        system: the name of the distribution.
        kernel: the release of the kernel.
        architecture: the architecture of the processors.
        python: the version of Python.
        cpus: the number of processors that this process may use.
        memory_bytes: the size of the memory.
        free_disk_bytes: the free space in the current directory.
    """

    system: str
    kernel: str
    architecture: str
    python: str
    cpus: Count
    memory_bytes: Count
    free_disk_bytes: Count


class MachineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that a result was measured on.

    Attributes:
        node: the name of the node; null for the machine that ascar ran on.
        host: the name that the machine calls itself.
        system: the name of the distribution.
        kernel: the release of the kernel.
        architecture: the architecture of the processors.
        cpu: the model of the processors; empty if the machine does not tell it.
        cpus: the number of processors that a program may use.
        governor: the governor of the processors' frequency, several with commas; null if there is none.
        memory_bytes: the size of the memory.
        virtual: whether it is a virtual machine.
        load_begin: the mean length of the run queue in the minute before the first round.
        load_end: the same in the minute before the end; null if it could not be read.
    """

    node: str | None
    host: str
    system: str
    kernel: str
    architecture: str
    cpu: str
    cpus: Count
    governor: str | None
    memory_bytes: Count
    virtual: bool
    load_begin: float
    load_end: float | None


class MachineDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in which the machines of compared results differ.

    Attributes:
        fact: the fact, e.g. "kernel"; "machine" if a result does not say what it was measured on.
        values: the value of each result.
    """

    fact: str
    values: dict[str, str]


class TargetReadiness(msgspec.Struct, frozen=True):
    """Whether a target can be tuned on this machine.

    Attributes:
        kind: the kind of the target.
        ready: whether it can be tuned.
        missing: names of the needs that are missing.
        problem: why the target's package cannot be loaded; null if it can.
    """

    kind: str
    ready: bool
    missing: tuple[str, ...]
    problem: str | None


class Need(msgspec.Struct, frozen=True):
    """Something that tuning needs, and whether this machine has it.

    Attributes:
        name: a program, a privilege, or a facility of the kernel.
        purpose: the purpose of the need.
        found: the place where it is, or a substitute that was found; null if it is missing.
        needed_by: kinds of targets that cannot do without it.
        debian_package: the Debian package that contains it, if any.
        fedora_package: the Fedora package that contains it, if any.
        remedy: the remedy if it is missing and no package contains it.
    """

    name: str
    purpose: str
    found: str | None
    needed_by: tuple[str, ...] = ()
    debian_package: str | None = None
    fedora_package: str | None = None
    remedy: str | None = None


class DoctorResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/doctor/1",
):
    """What this machine can tune.

    Attributes:
        machine: the machine.
        targets: the targets, with their readiness.
        needs: the needs, found or not.
        missing_debian_packages: the Debian packages that contain missing programs.
        missing_fedora_packages: the Fedora packages that contain missing programs.
        unconfirmed: what `ascar apply --confirm` has put in force and nobody has confirmed yet, as far as
            this user may know: only root may read root's journals.
    """

    machine: Machine
    targets: tuple[TargetReadiness, ...]
    needs: tuple[Need, ...]
    missing_debian_packages: tuple[str, ...]
    missing_fedora_packages: tuple[str, ...]
    unconfirmed: tuple[PendingConfirmation, ...] = ()


UNKNOWN = "unknown"
"""The value in force where a system does not tell it."""


class AppliedSetting(msgspec.Struct, frozen=True):
    """A setting that ascar sets: of the kernel, or of a system of its own kind.

    Attributes:
        parameter: the parameter that the knob belongs to.
        knob: the keeper's name of the knob.
        path: the file of the knob.
        before: the value before the change; "unknown" if the system does not tell it.
        after: the value after the change.
        command: the command that an administrator would type.
    """

    in_document_too: ClassVar = ("command",)

    parameter: str
    knob: str
    path: str
    before: str
    after: str

    @property
    def command(self) -> str:
        """The command that an administrator would type."""
        if self.knob.startswith("vm."):
            return shell_line(["sysctl", "-w", f"{self.knob}={self.after}"])
        if self.path.startswith(("/proc/", "/sys/")):
            return echo_line(self.after, self.path)
        return comment(f"in {self.path}: {self.knob} {self.after}")


class LeftToUser(msgspec.Struct, frozen=True):
    """Parameters that ascar does not set.

    Attributes:
        parameters: the names of the parameters.
        why: the reason, in one line.
        commands: the commands that an administrator would type.
    """

    parameters: tuple[str, ...]
    why: str
    commands: tuple[str, ...]


class ApplyResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/apply/1",
):
    """What was put in force, or with --dry-run would be.

    Attributes:
        run_id: the number of the run.
        dry_run: whether nothing was changed.
        configuration: a value for every active parameter.
        settings: the knobs that were set, or that --dry-run would set.
        left_to_you: the parameters that ascar does not set.
        warnings: the differences between this machine and that of the result.
        until_unix_s: the time at which the settings are put back unless `ascar confirm` comes first; null:
            they stay.
    """

    run_id: Count
    dry_run: bool
    configuration: Configuration
    settings: tuple[AppliedSetting, ...]
    left_to_you: tuple[LeftToUser, ...]
    warnings: tuple[str, ...]
    until_unix_s: Count | None


class ConfirmResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/confirm/1",
):
    """What stays in force from now on.

    Attributes:
        run_id: the number of the run.
        changes: the number of changes that were confirmed.
    """

    run_id: Count
    changes: Count


class ComparedSetting(msgspec.Struct, frozen=True):
    """A value of a configuration beside the value in force.

    Attributes:
        parameter: the name of the parameter.
        knob: the system's own name of the setting.
        wanted: the value in the configuration.
        found: the value in force.
        in_force: whether the two are the same.
    """

    parameter: str
    knob: str
    wanted: str
    found: str
    in_force: bool


class NotRead(msgspec.Struct, frozen=True):
    """Parameters whose values in force ascar cannot read here.

    Attributes:
        parameters: the names of the parameters.
        why: the reason, in one line.
    """

    parameters: tuple[str, ...]
    why: str


class ConfigurationDrift(msgspec.Struct, frozen=True):
    """How far a configuration is in force.

    Attributes:
        settings: the values that were read.
        not_read: the parameters that were not read.
        warnings: the differences between this machine and that of the result.
    """

    settings: tuple[ComparedSetting, ...]
    not_read: tuple[NotRead, ...]
    warnings: tuple[str, ...]

    @property
    def in_force(self) -> bool | None:
        """Whether the whole configuration is in force; None: what can be read is, the rest is not known."""
        if not all(one.in_force for one in self.settings):
            return False
        return None if self.not_read else True


class DriftResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/drift/1",
):
    """Whether a configuration is still in force, and still better than the default.

    Attributes:
        run_id: the number of the run.
        in_force: whether the whole configuration is in force; null if what can be read is, and some of it
            cannot.
        settings: the values that were read.
        not_read: the parameters that were not read.
        warnings: the differences between this machine and that of the result.
        unconfirmed: whether the configuration waits for `ascar confirm`, as far as this user may know.
        verdict: the comparison with the default that was made now; null without --measure.
    """

    run_id: Count
    in_force: bool | None
    settings: tuple[ComparedSetting, ...]
    not_read: tuple[NotRead, ...]
    warnings: tuple[str, ...]
    unconfirmed: bool
    verdict: Verdict | None


class LeftAlone(msgspec.Struct, frozen=True):
    """A knob that another program has changed; it was not overwritten.

    Attributes:
        target: the knob.
        expected: the value that ascar had set.
        found: the value that was found.
    """

    target: str
    expected: str
    found: str


class PendingConfirmation(msgspec.Struct, frozen=True):
    """Changes that stay in force only if they are confirmed in time.

    Attributes:
        owner: the command that made them, e.g. "apply 3 (mailserver)".
        left_s: the seconds that are left to confirm them.
        until_unix_s: the time at which they are put back, as the machine's clock had it when they were made.
        changes: the number of changes.
    """

    owner: str
    left_s: Count
    until_unix_s: Count
    changes: Count


class RestoreReport(msgspec.Struct, frozen=True):
    """The result of restoring a machine.

    Attributes:
        restored: the values that were put back.
        left_alone: the knobs that another program has changed; they were not overwritten.
        failed: the values that could not be put back.
        unconfirmed: the changes that are still in force, and are put back unless they are confirmed.
    """

    restored: tuple[str, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    failed: tuple[str, ...] = ()
    unconfirmed: tuple[PendingConfirmation, ...] = ()


class RestoreResult(RestoreReport, frozen=True, tag_field="schema", tag="ascar/restore/1"):
    """The result of `ascar restore`."""


class ExportResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/export/1",
):
    """A configuration in a form that an administrator can use.

    Attributes:
        run_id: the number of the run.
        form: the format of the lines.
        configuration: a value for every active parameter.
        chosen: the parameters that differ from the defaults of the study; lines contain only these.
        lines: the lines; empty if this format cannot express the configuration.
    """

    run_id: Count
    form: ExportForm
    configuration: Configuration
    chosen: tuple[str, ...]
    lines: tuple[str, ...]
