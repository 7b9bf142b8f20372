"""What a study's data says: frames, figures, the report."""

from ascar.analysis.frames import trials_frame
from ascar.analysis.report import write_report

__all__ = ["trials_frame", "write_report"]
