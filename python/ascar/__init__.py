"""ascar finds and keeps good settings for storage systems, and only believes numbers it can defend.

The public surface of Python: three loops (`tune`, `make_rules`, `tune_online`), measuring (`measure`,
`compare`, `analyze`), what they take (`Study`, `Space` and its parameters), what they return, the history
(`History`), and clients that limit their requests (`Stream`). A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar import optimizers
    from ascar._core import Stream, StreamRequest, StreamState, __version__
    from ascar.api.measuring import Measurements, Ranking, compare, measure
    from ascar.api.online import tune_online
    from ascar.api.rules import make_rules
    from ascar.api.tuning import TuneOutcome, tune
    from ascar.errors import AscarError, InputError, Refused, WorkError
    from ascar.history import History
    from ascar.objective import Objective
    from ascar.optimizers import Evaluation
    from ascar.pilot.analysis import analyze
    from ascar.results.measurement import Measurement
    from ascar.results.trial import Trial, TrialState
    from ascar.results.verdict import Verdict
    from ascar.space import (
        ChangeCost,
        Configuration,
        Guarantee,
        Parameter,
        Space,
        boolean,
        categorical,
        floating,
        integer,
        ordinal,
        preset,
    )
    from ascar.study import Study

__all__ = [
    "AscarError",
    "ChangeCost",
    "Configuration",
    "Evaluation",
    "Guarantee",
    "History",
    "InputError",
    "Measurement",
    "Measurements",
    "Objective",
    "Parameter",
    "Ranking",
    "Refused",
    "Space",
    "Stream",
    "StreamRequest",
    "StreamState",
    "Study",
    "Trial",
    "TrialState",
    "TuneOutcome",
    "Verdict",
    "WorkError",
    "__version__",
    "analyze",
    "boolean",
    "categorical",
    "compare",
    "floating",
    "integer",
    "make_rules",
    "measure",
    "optimizers",
    "ordinal",
    "preset",
    "tune",
    "tune_online",
]

# Loaded when first asked for: `import ascar` takes no time, and a command loads only what it uses.
_MODULES = {
    "ascar._core": ("Stream", "StreamRequest", "StreamState", "__version__"),
    "ascar.api.measuring": ("Measurements", "Ranking", "compare", "measure"),
    "ascar.api.online": ("tune_online",),
    "ascar.api.rules": ("make_rules",),
    "ascar.api.tuning": ("TuneOutcome", "tune"),
    "ascar.errors": ("AscarError", "InputError", "Refused", "WorkError"),
    "ascar.history": ("History",),
    "ascar.results.measurement": ("Measurement",),
    "ascar.objective": ("Objective",),
    "ascar.optimizers": ("Evaluation", "optimizers"),
    "ascar.results.trial": ("Trial", "TrialState"),
    "ascar.results.verdict": ("Verdict",),
    "ascar.pilot.analysis": ("analyze",),
    "ascar.space": (
        *("ChangeCost", "Configuration", "Guarantee", "Parameter", "Space"),
        *("boolean", "categorical", "floating", "integer", "ordinal", "preset"),
    ),
    "ascar.study": ("Study",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ascar.threads import loading_for_one_thread

    with loading_for_one_thread():
        module = import_module(_HOMES[name])
    value = globals()[name] = module if name == "optimizers" else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
