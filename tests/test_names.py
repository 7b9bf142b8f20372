from __future__ import annotations

import pytest

from ascar.errors import InputError
from ascar.names import names_of


def test_a_name_counts_once_and_spaces_do_not():
    assert names_of("--ignore", " fs,size , fs,,") == ("fs", "size")


@pytest.mark.parametrize("text", ["", " , "])
def test_a_list_without_a_name_is_refused(text):
    with pytest.raises(InputError, match="--ignore = .*: must be names with commas between them"):
        names_of("--ignore", text)
