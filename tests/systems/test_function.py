"""A Python function as a target and its own load."""

from __future__ import annotations

import pytest

from ascar.errors import StudyError
from ascar.space import Space, boolean, integer
from ascar.study import Study
from ascar.systems import open_target
from ascar.testing import TargetContract

SPACE = Space((integer("depth", (1, 9), default=5), boolean("direct", default=False)))


class TestPythonFunction(TargetContract):
    def make(self):
        return open_target(Study.of_function(lambda configuration: configuration["depth"], SPACE).target)


def test_without_its_function_it_says_where_it_can_be_tuned():
    def depth(configuration):
        return configuration["depth"]

    text = Study.of_function(depth, SPACE).text
    with pytest.raises(StudyError, match="the Python function depth cannot be found from here"):
        open_target(Study.parse(text).target)


def test_the_same_function_and_space_are_the_same_study():
    def depth(configuration):
        return configuration["depth"]

    one, again = (Study.of_function(depth, SPACE) for _ in range(2))
    other = Study.of_function(depth, Space((integer("depth", (1, 8), default=5),)))
    assert one.digest == again.digest != other.digest
    assert Study.of(one, study={"seed": 4}).target["function"] is depth
