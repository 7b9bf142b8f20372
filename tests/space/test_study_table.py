import tomllib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.errors import SpaceError
from ascar.space import Guarantee, Space, preset, study_space

V5 = preset("storage-v5").permit_weaker(Guarantee)


@dataclass
class Study:
    space: dict[str, Any] = field(default_factory=dict)


def read(text, base=V5, current=None):
    return study_space(Study(tomllib.loads(text)["space"]), base, current)


def test_without_a_table_it_is_the_targets_space_without_weaker_values():
    assert study_space(Study(), V5) == V5.permit_weaker([])


def test_everything_together():
    space = read(
        """
        [space]
        preset = "storage-v5"
        constraints = ["vm_dirty_ratio <= 40"]
        forbidden = [{ fs = "btrfs", block_scheduler = "bfq" }]
        pinned = { atime = "noatime" }
        allow_weaker = ["btrfs_data_mode=nodatasum"]
        allow_cost = ["dyn-kernel", "remount", "reformat-restore"]
        [space.parameters.block_read_ahead_kb]
        values = [2048, 128]
        default = 2048
        [space.parameters.fs]
        values = ["btrfs", "ext4"]
        """
    )
    assert space.domain("block_read_ahead_kb").values == (128, 2048)
    assert space.default()["block_read_ahead_kb"] == 2048
    assert space.domain("fs").values == ("ext4", "btrfs")
    assert space.domain("atime").values == ("noatime",)
    assert space.domain("ext_journal_mode").values == ("ordered",)
    assert space.domain("btrfs_data_mode").values == ("datacow", "nodatasum")
    assert not space.is_valid({**space.pin({"fs": "btrfs"}).default(), "block_scheduler": "bfq"})
    assert not space.is_valid({**space.default(), "vm_dirty_ratio": 60})


def test_current_values_are_kept_where_a_change_is_not_allowed():
    current = {"fs": "xfs", "block_size_bytes": 1024, "atime": "noatime"}
    space = read('[space]\nallow_cost = ["dyn-kernel"]', current=current)
    assert space.default()["fs"] == "xfs"
    assert space.default()["block_size_bytes"] == 1024
    assert space.domain("atime").values == ("noatime",)
    assert set(space.domain("block_scheduler").values) == {"none", "mq-deadline", "kyber", "bfq"}


def test_a_target_without_parameters_takes_those_of_the_study():
    space = read(
        """
        [space]
        constraints = ["cache_mb * 2 <= 512 or mode == 'fast'"]
        [space.parameters.mode]
        kind = "categorical"
        values = ["fast", "safe", "unsafe"]
        default = "safe"
        cost = "app-restart"
        weaker = { unsafe = ["durability", "integrity"] }
        [space.parameters.cache_mb]
        kind = "integer"
        low = 1
        high = 1024
        log = true
        default = 64
        cost = "dyn-app"
        unit = "MB"
        special = { "0" = "automatic" }
        [space.parameters.threads]
        kind = "ordinal"
        values = [1, 2, 4]
        default = 2
        cost = "app-restart"
        when = 'mode == "fast"'
        [space.parameters.ratio]
        kind = "float"
        low = 0.0
        high = 1
        step = 0.25
        default = 0.5
        cost = "reboot"
        [space.parameters.direct]
        kind = "boolean"
        default = false
        cost = "dyn-app"
        description = "bypass the cache"
        """,
        Space(),
    )
    assert [p.kind for p in space.parameters] == ["categorical", "integer", "ordinal", "float", "boolean"]
    assert space.count() == (1025 * 3 + 257) * 5 * 2
    assert "threads" not in space.default()


def test_a_preset_for_a_target_without_parameters():
    assert read('[space]\npreset = "storage-v4"', Space()).count() == 5184


def test_another_preset_must_be_within_what_the_target_takes():
    with pytest.raises(
        SpaceError, match=r"space\.preset = 'storage-v3': has 'inode_size_bytes', which this target"
    ):
        read('[space]\npreset = "storage-v3"')
    with pytest.raises(
        SpaceError, match=r"space\.preset = 'storage-v5': this target cannot take it: .*'mq-deadline'"
    ):
        read(
            '[space]\npreset = "storage-v5"',
            Space(V5.only("block_scheduler", ["none"]).parameters, name="other"),
        )


WRONG = [
    (
        "space",
        "presets = 1",
        "space.presets: unknown key; allowed here: preset, parameters, .*did you mean 'preset'",
    ),
    ("space", 'preset = "storage-v6"', "space.preset = 'storage-v6': must be one of storage-v1"),
    ("space", "preset = 5", "space.preset = 5: must be a string"),
    ("space", 'constraints = "a < b"', "space.constraints = 'a < b': must be a list of strings"),
    ("space", "constraints = [1]", r"space.constraints = \[1\]: must be a list of strings"),
    (
        "space",
        'constraints = ["block_read_ahead_kb <"]',
        "space.constraints: .*'block_read_ahead_kb <', position 22: expected",
    ),
    (
        "space",
        'constraints = ["read_ahead < 3"]',
        "unknown parameter 'read_ahead'.*did you mean 'block_read_ahead_kb'",
    ),
    (
        "space",
        'constraints = ["vm_dirty_ratio < 10"]',
        "constraint 'vm_dirty_ratio < 10' cannot be satis",
    ),
    (
        "space",
        'constraints = ["vm_dirty_ratio < 20", "vm_dirty_background_ratio > 5"]',
        "'vm_dirty_background_ratio < vm_dirty_ratio', 'vm_dirty_ratio < 20', "
        "'vm_dirty_background_ratio > 5' cannot be satisfied together",
    ),
    (
        "space",
        'constraints = ["vm_dirty_ratio > 20"]',
        "the defaults: constraint 'vm_dirty_ratio > 20'",
    ),
    (
        "space",
        'constraints = ["block_scheduler"]',
        "'block_scheduler' with block_scheduler = 'none': block_scheduler is \"none\", not true",
    ),
    (
        "space",
        'forbidden = [{ fs = "zfs" }]',
        "space.forbidden: parameter fs: 'zfs' is not allowed; allowed: 'ext2'",
    ),
    ("space", "forbidden = [{}]", "space.forbidden: the combination is empty"),
    ("space", 'forbidden = ["fs"]', "space.forbidden = .*must be a list of tables"),
    ("space", 'pinned = { fs = "zfs" }', "space.pinned: parameter fs: 'zfs' is not allowed"),
    ("space", 'pinned = { fss = "xfs" }', "space.pinned: unknown parameter 'fss'.*did you mean 'fs'"),
    (
        "space",
        'pinned = { fs = "ext2" }',
        "space.pinned: .*weakens consistency .* add 'fs=ext2' to allow_weaker",
    ),
    ("space", "pinned = { write_barrier = 1 }", "write_barrier: 1 is not allowed; allowed: False, True"),
    ("space", "pinned = 3", "space.pinned = 3: must be a table"),
    (
        "space",
        'allow_cost = ["remont"]',
        "space.allow_cost: 'remont' is not a change cost; .*did you mean 'remount'",
    ),
    ("space", 'allow_cost = "remount"', "space.allow_cost = 'remount': must be a list of change costs"),
    ("space", "allow_cost = [true]", "must be a list of change costs"),
    ("space", "allow_cost = [9]", "9 is not a change cost"),
    ("space", 'allow_weaker = ["durabilty"]', "space.allow_weaker: 'durabilty' .* did you mean 'durability'"),
    ("space", 'allow_weaker = ["fs=ext4"]', "space.allow_weaker: 'fs=ext4' weakens nothing"),
    ("space", 'allow_weaker = ["barrier=false"]', "unknown parameter 'barrier'"),
    ("space", "parameters = 3", "space.parameters = 3: must be a table"),
    (
        "space.parameters.read_ahead",
        "values = [1]",
        "unknown parameter; this target has .*did you mean 'block_read_ahead_kb'",
    ),
    (
        "space.parameters.block_read_ahead_kb",
        "values = [128, 129]",
        "space.parameters.block_read_ahead_kb: 129 is not allowed",
    ),
    (
        "space.parameters.block_read_ahead_kb",
        "values = [512]",
        "leaves out the default, 128; keep it, or give another",
    ),
    ("space.parameters.block_read_ahead_kb", "values = []", "values: the list is empty"),
    ("space.parameters.block_read_ahead_kb", "values = 3", "block_read_ahead_kb.values = 3: must be a list"),
    (
        "space.parameters.block_read_ahead_kb",
        "value = [128]",
        "block_read_ahead_kb.value: unknown key; .*did you mean 'values'",
    ),
    (
        "space.parameters.block_read_ahead_kb",
        "low = 16",
        "low = 16: block_read_ahead_kb is ordinal: give values instead",
    ),
    ("space.parameters.block_read_ahead_kb", 'cost = "reboot"', "cost = 'reboot': is set by the target"),
    ("space.parameters.block_read_ahead_kb", "default = 100", "default 100 is not allowed; allowed: 0, 16"),
    (
        "space.parameters.ext_commit_interval_s",
        "default = 60",
        "default 60 weakens durability; no default can",
    ),
]


@pytest.mark.parametrize(
    ("section", "line", "message"), WRONG, ids=[f"{section}: {line}" for section, line, _ in WRONG]
)
def test_every_mistake_is_one_line_naming_key_value_and_what_is_allowed(section, line, message):
    with pytest.raises(SpaceError, match=message) as caught:
        read(f"[{section}]\n{line}")
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("space")
    assert caught.value.exit_status == 2


NEW = {"kind": "integer", "low": 1, "high": 9, "default": 1, "cost": "dyn-app"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, 'space.parameters.x.kind: missing; write e.g. kind = "ordinal"'),
        ({"default": None}, "space.parameters.x.default: missing"),
        ({"cost": None}, 'space.parameters.x.cost: missing; write e.g. cost = "dyn-kernel"'),
        ({"low": None}, "space.parameters.x.low: missing"),
        (
            {"kind": "int"},
            "space.parameters.x.kind = 'int': must be one of categorical, ordinal, boolean, integer",
        ),
        ({"kind": 3}, "space.parameters.x.kind = 3: must be one of"),
        ({"low": "1"}, "space.parameters.x.low = '1': must be an integer"),
        ({"low": 1.5}, "space.parameters.x.low = 1.5: must be an integer"),
        ({"low": 20}, "space.parameters.x: low <= high must hold, but got low = 20, high = 9"),
        ({"step": 0}, "space.parameters.x: step: 0: must be a number above zero"),
        ({"log": 1}, "space.parameters.x.log = 1: must be true or false"),
        ({"log": True, "low": 0}, "space.parameters.x: low = 0: a logarithmic scale starts above zero"),
        ({"default": 10}, "space.parameters.x: default 10 is out of range; allowed: integers from 1 to 9"),
        ({"default": "1"}, "default '1' is not allowed; allowed: integers from 1 to 9"),
        ({"default": [1]}, "space.parameters.x.default: [1]: must be a string, a number"),
        ({"cost": "free"}, "cost: 'free' is not a change cost; allowed: dyn-kernel"),
        ({"cost": 0}, "space.parameters.x.cost = 0: must be one of dyn-kernel"),
        ({"when": "y > 1"}, "unknown parameter 'y'"),
        ({"when": "y >"}, "space.parameters.x: when: formula 'y >', position 4"),
        ({"when": 1}, "space.parameters.x.when = 1: must be a string"),
        ({"values": [1]}, "space.parameters.x.values: unknown key"),
        ({"weaker": {"3": "durability"}}, "weaker: '3': name a side of the range, e.g. '>3"),
        (
            {"weaker": {">3": "speed"}},
            "weaker: 'speed' is not a guarantee; allowed: durability, consistency, integrity, availability",
        ),
        ({"weaker": {">3": 1}}, "space.parameters.x.weaker.>3 = 1: must be a guarantee"),
        ({"weaker": 1}, "space.parameters.x.weaker = 1: must be a table"),
        ({"special": {"auto": "?"}}, "space.parameters.x.special: 'auto': must be a number"),
        ({"special": {"0": 1}}, "space.parameters.x.special.0 = 1: must be a string"),
        ({"unit": "a\nb"}, "space.parameters.x.unit = 'a\\nb': must be one printable line"),
        ({"description": "a" * 501}, "must be one printable line of at most 500"),
    ],
)
def test_mistakes_in_new_parameters(change, message):
    table = {key: value for key, value in (NEW | change).items() if value is not None}
    with pytest.raises(SpaceError) as caught:
        study_space(Study({"parameters": {"x": table}}), Space())
    assert message in caught.value.message
    assert "\n" not in caught.value.message


toml_values = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-5, 5000), st.floats(), st.text(max_size=6), st.sampled_from(V5.names)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ["preset", "parameters", "constraints", "forbidden", "pinned", "allow_cost", "allow_weaker"]
parameter_tables = st.dictionaries(
    st.sampled_from(
        ["kind", "values", "low", "high", "step", "log", "default", "cost", "when", "weaker", "special"]
    ),
    toml_values,
)


@given(
    st.dictionaries(st.sampled_from(KEYS), toml_values, max_size=3),
    st.dictionaries(st.one_of(st.sampled_from(V5.names), st.text(max_size=5)), parameter_tables, max_size=2),
    st.booleans(),
)
@settings(deadline=None, max_examples=200)
def test_any_table_is_read_or_refused(table, parameters, known):
    try:
        study_space(Study({"parameters": parameters} | table), V5 if known else Space())
    except SpaceError as error:
        message = error.message
    else:
        message = ""
    assert "\n" not in message
