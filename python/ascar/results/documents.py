"""Every document that commands print with --json, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec

DOCUMENTS = {
    "analyze": "analyze:AnalyzeResult",
    "apply": "machine:ApplyResult",
    "capes-contest": "contest:CapesContestResult",
    "capes-control": "capes:CapesControlResult",
    "capes-game": "capes:CapesGameResult",
    "capes-prove": "capes:CapesProveResult",
    "capes-status": "capes:CapesStatusResult",
    "capes-down": "capes:CapesDownResult",
    "capes-train": "capes:CapesTrainResult",
    "capes-up": "capes:CapesUpResult",
    "compare": "compare:CompareResult",
    "confirm": "machine:ConfirmResult",
    "catalogue": "tuning:CatalogueResult",
    "check": "check:CheckResult",
    "doctor": "machine:DoctorResult",
    "drift": "machine:DriftResult",
    "error": "problem:ErrorResult",
    "explore": "tuning:ExploreResult",
    "export": "machine:ExportResult",
    "history-export": "history:HistoryExportResult",
    "history-import": "history:HistoryImportResult",
    "history-ls": "history:HistoryLsResult",
    "history-pareto": "history:HistoryParetoResult",
    "history-check": "history:HistoryCheckResult",
    "history-purge": "history:HistoryPurgeResult",
    "history-show": "history:HistoryShowResult",
    "importance": "importance:ImportanceResult",
    "init": "tuning:InitResult",
    "lab-optimizers": "lab:LabOptimizersResult",
    "measure": "measure:MeasureResult",
    "report": "tuning:ReportResult",
    "restore": "machine:RestoreResult",
    "sharp-candidates": "rule_sets:SharpCandidatesResult",
    "sharp-contest": "contest:SharpContestResult",
    "sharp-deploy": "rule_deployment:SharpDeployResult",
    "sharp-explain": "rule_sets:SharpExplainResult",
    "sharp-learn": "rule_sets:SharpLearnResult",
    "library-add": "library:LibraryAddResult",
    "library-bootstrap": "library:LibraryBootstrapResult",
    "library-find": "library:LibraryFindResult",
    "library-ls": "library:LibraryLsResult",
    "library-predict": "library:LibraryPredictResult",
    "library-show": "library:LibraryShowResult",
    "sharp-search": "rule_search:SharpSearchResult",
    "sharp-show": "rule_deployment:SharpShowResult",
    "sharp-split": "rule_sets:SharpSplitResult",
    "sharp-down": "rule_deployment:SharpDownResult",
    "sharp-watch": "rule_deployment:SharpWatchResult",
    "sim-run": "simulation:SimRunResult",
    "sim-serve": "simulation:SimServeResult",
    "sim-sweep": "simulation:SimSweepResult",
    "space": "tuning:SpaceResult",
    "sweep": "tuning:SweepResult",
    "testbed-boot": "testbed:TestbedBootResult",
    "testbed-cut": "testbed:TestbedCutResult",
    "testbed-down": "testbed:TestbedDownResult",
    "testbed-status": "testbed:TestbedStatusResult",
    "testbed-up": "testbed:TestbedUpResult",
    "tune": "tuning:TuneResult",
    "verify": "tuning:VerifyResult",
    "variation": "variation:VariationResult",
    "watch": "watch:WatchResult",
    "watch-shift": "watch:WatchShift",
    "workload-features": "workload:WorkloadFeaturesResult",
    "workload-record": "workload:WorkloadRecordResult",
}
"""The module below `ascar.results` and the class of each document's struct."""


def struct_of(name: str) -> type[msgspec.Struct]:
    """The struct of a document."""
    module, _, kind = DOCUMENTS[name].partition(":")
    return getattr(import_module(f"ascar.results.{module}"), kind)
