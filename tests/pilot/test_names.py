"""What the package offers is loaded when it is asked for."""

import pytest

from ascar import pilot


@pytest.mark.parametrize("name", pilot.__all__)
def test_every_name_is_there(name):
    assert getattr(pilot, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pilot.nothing
