"""ascar finds and keeps good settings for storage systems, and only believes numbers it can defend."""

from ascar._core import __version__

__all__ = ["__version__"]
