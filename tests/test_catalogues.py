"""The list of the kernel's settings, from which the keeper is built, and what reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.catalogues import DEVICE_MARK, kernel_setting, linux
from ascar.space import Guarantee, preset
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_setting_has_one_identifier_and_one_way_to_say_its_values() -> None:
    identifiers = [re.sub(r"\W", "_", name) for name in linux()]
    assert len(set(identifiers)) == len(identifiers)
    for one in linux().values():
        ways = (one.range, one.powers_of_two, one.up_to, one.listed or None, one.limit)
        assert sum(way is not None for way in ways) == 1, one.name
        assert one.what.endswith("."), one.name
        assert (DEVICE_MARK in one.name) == (DEVICE_MARK in one.path or one.limit is not None), one.name
        assert set(one.weaker.values()) <= set(Guarantee)
        assert one.zeroes is None or one.zeroes in linux()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("vm.dirty_ratio", "vm.dirty_ratio"),
        ("block.sda.scheduler", "block.<dev>.scheduler"),
        ("block.DEV.iosched/read_expire", "block.<dev>.iosched/read_expire"),
        ("block.a.b.scheduler", None),
        ("block..scheduler", None),
        ("vm.dirty_ratio ", None),
        ("vm", None),
        ("", None),
    ],
)
def test_a_knob_is_found_by_its_name(name: str, found: str | None) -> None:
    setting = kernel_setting(name)
    assert (setting and setting.name) == found


def test_the_parameters_of_storage_v5_are_settings_of_the_list() -> None:
    for parameter in preset("storage-v5").parameters:
        if not parameter.native:
            continue
        setting = kernel_setting(parameter.native)
        assert setting is not None, parameter.native
        assert setting.unit == parameter.unit or not parameter.unit, parameter.native
        weaker = {f"{one.relation}{one.value:g}": set(one.guarantees) for one in parameter.weaker}
        assert {key: {value} for key, value in setting.weaker.items()} == weaker, parameter.native


def test_the_list_is_shown_and_searched(ascar_space: Callable[..., Any]) -> None:
    document = ascar_space("linux", "--match", "dirty_ratio")
    assert [one["name"] for one in document["settings"]] == ["vm.dirty_ratio"]
    assert document["settings"][0]["values"] == "0 to 100"


@pytest.fixture
def ascar_space(capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    import msgspec

    from ascar.cli.main import main

    def run(*words: str) -> Any:
        assert main(["space", *words, "--json"]) == 0
        return msgspec.json.decode(capfd.readouterr().out)

    return run


@pytest.mark.root
@pytest.mark.machine
def test_the_keeper_has_the_same_list() -> None:
    with Keeper("the list's test") as keeper:
        for one in linux().values():
            if DEVICE_MARK in one.name or not Path(one.path).exists():
                continue
            assert keeper.knob_read(one.name).value == int(Path(one.path).read_text())
