"""Every error of the package, one tree.

    AscarError                      exit status
    ├── InputError                  2   something given to us is wrong; nothing was touched
    │   ├── StudyError                  a key of a study file
    │   ├── ScenarioError               a key of a simulated cluster's scenario
    │   ├── SpaceError                  a parameter, a value, a constraint
    │   ├── ExpressionError             a formula
    │   └── EnvironmentLacks            a program, a privilege, a device that is not there
    ├── Refused                     2   a safety rule says no: lock held, device in use, not allowed
    ├── WorkError                   1   the work itself failed
    │   ├── StageFailed                 mkfs, mount, fill or workload failed or ran out of time
    │   ├── NothingDone                 the load did nothing while it was observed
    │   ├── KeeperLost                  the keeper died or cannot be understood
    │   ├── MessagingError              a message server, a node or a controller does not answer
    │   └── HistoryError                the history cannot be read or written
    └── Exhausted                   0   nothing is left to propose (a stop, not a failure)

Each message is one line: the offending name, its value, what is allowed, and what to do.
"""

from __future__ import annotations


class AscarError(Exception):
    """Root of the tree. `exit_status` is what a command ends with."""

    exit_status = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InputError(AscarError):
    """Something given to us is wrong; nothing was touched."""

    exit_status = 2


class StudyError(InputError):
    """A key of a study file is unknown, missing, of the wrong type or out of range."""


class ScenarioError(InputError):
    """A key of a scenario of the simulated cluster is unknown, missing, of the wrong type or out of range."""


class SpaceError(InputError):
    """A parameter, value, constraint or configuration is invalid."""


class ExpressionError(InputError):
    """A formula cannot be parsed or evaluated."""


class EnvironmentLacks(InputError):
    """A program, privilege or device that the work needs is not there."""


class Refused(AscarError):
    """A safety rule says no: a lock is held, a device is in use, a change is not allowed."""

    exit_status = 2


class WorkError(AscarError):
    """The work itself failed."""


class StageFailed(WorkError):
    """A stage of a trial (format, mount, fill, load) failed or ran out of time.

    Args:
        stage: the stage's name.
        message: the message for people, in one line.
        stderr: the failing program's last output, kept with the trial.
    """

    def __init__(self, stage: str, message: str, stderr: str = "") -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage
        self.stderr = stderr


class KeeperLost(WorkError):
    """The keeper died, or what it says cannot be understood."""


class NothingDone(WorkError):
    """The load did nothing while it was observed."""


class MessagingError(WorkError):
    """A message server, a node or a controller does not answer, refuses, or cannot be understood."""


class HistoryError(WorkError):
    """The history cannot be read or written."""


class Exhausted(AscarError):
    """Nothing is left to propose: a reason to stop, not a failure."""

    exit_status = 0
