"""The study file: TOML read into frozen values, every mistake named by its key."""

from __future__ import annotations

from ascar.study.file import (
    FILE_BYTES_MAX,
    Study,
    called,
    study_digest,
    study_table,
    study_text,
    table_of_file,
    tuned_tables,
)
from ascar.study.guard import GuardSection
from ascar.study.keys import absolute, check_limits, check_value, convert, duration, size, within, words_in
from ascar.study.nodes import node_tables, on_node
from ascar.study.sections import (
    MeasurementSection,
    RecommendSection,
    StartSection,
    StudySection,
    VerifySection,
)
from ascar.study.stop import DiversityStop, RemainingGainStop, StopSection, stop_tables

__all__ = [
    "FILE_BYTES_MAX",
    "DiversityStop",
    "GuardSection",
    "MeasurementSection",
    "RecommendSection",
    "RemainingGainStop",
    "StartSection",
    "StopSection",
    "Study",
    "StudySection",
    "VerifySection",
    "absolute",
    "called",
    "check_limits",
    "check_value",
    "convert",
    "duration",
    "node_tables",
    "on_node",
    "size",
    "stop_tables",
    "study_digest",
    "study_table",
    "study_text",
    "table_of_file",
    "tuned_tables",
    "within",
    "words_in",
]
