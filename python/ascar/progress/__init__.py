"""What is known of a running study, event by event, and the line that is worth printing of each."""

from ascar.progress.lines import line_of
from ascar.progress.state import READINGS_SHOWN, StudyProgress

__all__ = ["READINGS_SHOWN", "StudyProgress", "line_of"]
