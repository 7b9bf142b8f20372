"""Running programs of the user's: heard while they run, held to limits, their output turned into numbers."""

from ascar.program.extraction import Extractor, JsonPath, Pattern, parse_extractor
from ascar.program.harvest import Harvest
from ascar.program.running import STDERR_BYTES_MAX, STDIN_BYTES_MAX, Program, ProgramExit, check, run_program

__all__ = [
    "STDERR_BYTES_MAX",
    "STDIN_BYTES_MAX",
    "Extractor",
    "Harvest",
    "JsonPath",
    "Pattern",
    "Program",
    "ProgramExit",
    "check",
    "parse_extractor",
    "run_program",
]
