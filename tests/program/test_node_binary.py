"""What is said of a way to root's keeper, by what is installed."""

from __future__ import annotations

import grp

import pytest

from ascar.program.node_binary import TUNING_GROUP, way_to_root


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ((TUNING_GROUP,), "have root add you to the group ascar-tune, and log in again"),
        ((), "be allowed to by `sudo make install-keeper`"),
    ],
)
def test_who_has_the_package_is_sent_to_its_group(monkeypatch, groups, said):
    def found(name):
        if name not in groups:
            raise KeyError(name)

    monkeypatch.setattr(grp, "getgrnam", found)
    assert way_to_root() == said
