"""A program of one's own, or of somebody else: what the study says of it is enough to tune it."""

from __future__ import annotations

from ascar.systems.program.system import ProgramSystem

__all__ = ["ProgramSystem"]
