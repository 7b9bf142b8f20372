"""What can be set, to what, at which cost, and with which promises: spaces and their configurations."""

from ascar.space.configuration import Configuration
from ascar.space.cost import ChangeCost, change_budget, change_costs_s
from ascar.space.difference import Difference
from ascar.space.document import space_from_json, space_key, space_to_document, space_to_json
from ascar.space.domain import Choices, Domain, Range, Value
from ascar.space.guarantee import Guarantee
from ascar.space.parameter import (
    Parameter,
    boolean,
    categorical,
    floating,
    identifier,
    integer,
    ordinal,
)
from ascar.space.presets import PRESETS, preset
from ascar.space.space import Space
from ascar.space.study_table import space_from_table, study_space

__all__ = [
    "PRESETS",
    "ChangeCost",
    "Choices",
    "Configuration",
    "Difference",
    "Domain",
    "Guarantee",
    "Parameter",
    "Range",
    "Space",
    "Value",
    "boolean",
    "categorical",
    "change_budget",
    "change_costs_s",
    "floating",
    "identifier",
    "integer",
    "ordinal",
    "preset",
    "space_from_json",
    "space_from_table",
    "space_key",
    "space_to_document",
    "space_to_json",
    "study_space",
]
