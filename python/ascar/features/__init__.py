"""Workload features, defined once for whoever needs them: loads, rule libraries, workload models.

A `Trace` (of a block device, of `ascard load`, or of a sampled process) has `features_of` it (type mix,
request sizes, positional and temporal gaps by type), Cao's eighteen (`cao_features`), and a
`signature_workload` that reproduces them.
"""

from ascar.features.block_trace import parse_blkparse, parse_mqsim, parse_msr
from ascar.features.cao import CAO_FEATURES, cao_features, cao_windows
from ascar.features.contention import features_of, relative_differences
from ascar.features.distance import (
    earth_movers_distance,
    relative_distance,
    standardize,
    standardized_distance,
)
from ascar.features.kernel_trace import parse_kernel_trace
from ascar.features.load_record import parse_load_record
from ascar.features.native_pace import at_native_pace
from ascar.features.pressure import pressure_of
from ascar.features.signature import Signature, signature_of
from ascar.features.signature_file import filled_bytes, signature_workload
from ascar.features.system_calls import parse_system_calls
from ascar.features.trace import Trace, TraceOperation
from ascar.features.trace_form import TRACE_FORMS, parse_trace

__all__ = [
    "CAO_FEATURES",
    "TRACE_FORMS",
    "Signature",
    "Trace",
    "TraceOperation",
    "at_native_pace",
    "cao_features",
    "cao_windows",
    "earth_movers_distance",
    "features_of",
    "filled_bytes",
    "parse_blkparse",
    "parse_kernel_trace",
    "parse_load_record",
    "parse_mqsim",
    "parse_msr",
    "parse_system_calls",
    "parse_trace",
    "pressure_of",
    "relative_differences",
    "relative_distance",
    "signature_of",
    "signature_workload",
    "standardize",
    "standardized_distance",
]
