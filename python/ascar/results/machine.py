"""Results of `ascar doctor`, `apply`, `restore` and `export`, and of a command that failed."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.mean import Count


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine."""

    system: str
    kernel: str
    architecture: str
    python: str
    cpus: Count
    memory_bytes: Count
    free_disk_bytes: Count


class TargetReadiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a target can be tuned here."""

    kind: str
    ready: bool
    missing: tuple[str, ...]
    problem: str | None


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that tuning needs, and whether it is here.

    Attributes:
        found: where it is; null: missing.
    """

    name: str
    purpose: str
    found: str | None
    needed_by: tuple[str, ...]
    debian_package: str | None
    fedora_package: str | None
    remedy: str | None


class DoctorResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/doctor/1",
):
    """What this machine can tune."""

    machine: Machine
    targets: tuple[TargetReadiness, ...]
    needs: tuple[Need, ...]
    missing_debian_packages: tuple[str, ...]
    missing_fedora_packages: tuple[str, ...]


class AppliedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that was put in force.

    Attributes:
        before: what was in force.
        command: what an administrator would type.
    """

    parameter: str
    knob: str
    path: str
    before: str
    after: str
    command: str


class LeftToUser(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that are left to the user."""

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
        configuration: a value for every parameter that is active; one that does not apply is
            absent.
        left_to_you: what ascar does not do.
    """

    run_id: Count
    dry_run: bool
    configuration: dict[str, str | float | bool]
    settings: tuple[AppliedSetting, ...]
    left_to_you: tuple[LeftToUser, ...]
    warnings: tuple[str, ...]


class LeftAlone(msgspec.Struct, frozen=True, kw_only=True):
    """A value that someone else has changed."""

    target: str
    expected: str
    found: str


class RestoreResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/restore/1",
):
    """What was put back.

    Attributes:
        left_alone: changed by someone else meanwhile.
    """

    restored: tuple[str, ...]
    left_alone: tuple[LeftAlone, ...]
    failed: tuple[str, ...]


class ExportResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/export/1",
):
    """A configuration in a form that an administrator can use.

    Attributes:
        configuration: a value for every parameter that is active; one that does not apply is
            absent.
        chosen: what differs from the defaults that the study found: lines speak of no more.
        lines: empty where this form can say nothing of it.
    """

    run_id: Count
    form: Literal["shell", "sysctl", "udev", "fstab", "tuned"]
    configuration: dict[str, str | float | bool]
    chosen: tuple[str, ...]
    lines: tuple[str, ...]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command failed.

    Attributes:
        kind: the error's class.
        message: one line: the offending key or name, its value, what is allowed.
    """

    kind: str
    message: str
    exit_status: Literal[0, 1, 2, 130]


class ErrorResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/error/1",
):
    """What any command prints instead of its own document when it fails; also on stderr, as one line."""

    error: Problem
