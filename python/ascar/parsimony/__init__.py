"""As little as is needed: the parameters that do not earn their place go back to the default.

See docs/algorithms/parsimony.md.
"""

from ascar.parsimony.stage import reduce

__all__ = ["reduce"]
