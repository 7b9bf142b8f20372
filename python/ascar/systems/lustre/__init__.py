"""A Lustre client: what `lctl` tells and sets, and what puts it back."""

from ascar.systems.lustre.client import LustreClient

__all__ = ["LustreClient"]
