"""Trials in a node: the load of a study that runs there, and the process there that is asked (`worker`)."""

from ascar.remote.load import load_there

__all__ = ["load_there"]
