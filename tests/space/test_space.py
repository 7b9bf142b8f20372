import pytest
from hypothesis import given, settings
from space_strategies import brute_force, satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import (
    ChangeCost,
    Configuration,
    Guarantee,
    Space,
    boolean,
    categorical,
    floating,
    integer,
    ordinal,
    preset,
)

COST = ChangeCost.DYN_KERNEL
SMALL = Space(
    (
        categorical("fs", ("ext4", "xfs"), default="ext4", cost=ChangeCost.REFORMAT_RESTORE),
        ordinal("block", (1024, 4096), default=4096, cost=ChangeCost.REFORMAT_RESTORE),
        ordinal("inode", (256, 2048), default=256, cost=ChangeCost.REFORMAT_RESTORE, when='fs == "ext4"'),
        boolean(
            "barrier", default=True, cost=ChangeCost.REMOUNT, weaker={False: ("durability", "consistency")}
        ),
        ordinal("commit", (5, 30, 60), default=5, cost=ChangeCost.REMOUNT, weaker={">5": "durability"}),
    ),
    ("inode <= block",),
    allow_weaker=tuple(Guarantee),
)


# Counting and validity against brute force.


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_counting_enumerating_and_validating_agree_with_brute_force(space):
    expected = brute_force(space)
    if not expected:
        with pytest.raises(SpaceError, match="no configuration is valid"):
            space.count()
        return
    assert space.count() == len(expected)
    found = list(space.enumerate())
    assert len(found) == len(set(found)) == len(expected)
    assert {configuration.text for configuration in found} == {Configuration(v).text for v in expected}
    assert all(space.validate(configuration) == configuration for configuration in found)


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_what_is_not_enumerated_is_not_valid(space):
    if not satisfiable(space):
        return
    valid = set(space.enumerate())
    names = [p.name for p in space.parameters]
    every = Space(tuple(space[name] for name in names))  # the conditions stay, the constraints go
    for configuration in every.enumerate():
        assert space.is_valid(configuration) == (configuration in valid)


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_an_unsatisfiable_core_is_minimal(space):
    if satisfiable(space):
        return
    with pytest.raises(SpaceError) as caught:
        space.count()
    core = [rule for rule in space.constraints if repr(str(rule)) in caught.value.message]
    assert core
    assert not brute_force(Space(space.parameters, tuple(core)))
    for left_out in range(len(core)):
        rest = [
            rule for index, rule in enumerate(core) if index != left_out and str(rule) != str(core[left_out])
        ]
        assert brute_force(Space(space.parameters, tuple(rest)))


def test_enumeration_is_lexicographic():
    space = Space(
        (ordinal("a", (3, 1), default=1, cost=COST), integer("b", (1, 3), default=1, cost=COST)), ("a != b",)
    )
    assert [tuple(c.values()) for c in space.enumerate()] == [(3, 1), (3, 2), (1, 2), (1, 3)]


def test_enumeration_is_lazy():
    space = Space(tuple(integer(f"x{index}", (0, 10**9), default=0, cost=COST) for index in range(50)))
    assert space.count() == (10**9 + 1) ** 50
    first = space.enumerate()
    assert set(next(first).values()) == {0}
    assert next(first)["x49"] == 1


def test_a_space_without_parameters_has_one_configuration():
    assert Space().count() == 1
    assert list(Space().enumerate()) == [Configuration({})]
    assert Space().default() == Configuration({})


def test_continuous_parameters_cannot_be_counted_or_listed():
    space = Space((floating("x", (0, 1), default=0.5, cost=COST),))
    assert space.count() is None
    with pytest.raises(SpaceError, match="parameter x is continuous"):
        space.enumerate()


def test_an_inactive_continuous_parameter_does_not_keep_from_counting():
    space = Space(
        (
            boolean("on", default=False, cost=COST),
            floating("x", (0, 1), default=0.5, cost=COST, when="on"),
        )
    )
    assert space.count() is None
    assert space.pin({"on": False}).count() == 1


def test_conditions_may_stand_before_what_they_depend_on():
    space = Space(
        (ordinal("x", (1, 2), default=1, cost=COST, when="on"), boolean("on", default=True, cost=COST))
    )
    assert space.count() == 3
    assert list(space.default()) == ["x", "on"]


def test_dense_constraints_are_met_by_rejection_when_the_diagram_grows_too_large():
    names = [f"x{index}" for index in range(26)]
    parameters = tuple(integer(name, (0, 3), default=0, cost=COST) for name in names)
    pairs = [f"{one} * {other} != 7" for one, other in zip(names, reversed(names), strict=True)]
    everything = " + ".join(f"{one} * {other}" for one, other in zip(names[::2], names[1::2], strict=True))
    space = Space(parameters, (f"{everything} <= 200", *pairs))
    assert space.count() is None
    assert space.is_valid(space.default())


def test_constraints_that_clash_are_found_among_many_that_the_diagram_cannot_hold():
    names = [f"x{index}" for index in range(24)]
    parameters = tuple(integer(name, (0, 3), default=0, cost=COST) for name in names)
    pairs = [f"{one} * {other} != 7" for one, other in zip(names, reversed(names), strict=True)]
    with pytest.raises(SpaceError, match="constraints 'x0 > 2', 'x0 < 2' cannot be satisfied together"):
        Space(parameters, (*pairs, "x0 > 2", "x0 < 2")).count()


# Messages.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"fss": "xfs"},
            "unknown parameter 'fss'; known: fs, block, inode, barrier, commit; did you",
        ),
        ({"fs": "zfs"}, "parameter fs: 'zfs' is not allowed; allowed: 'ext4', 'xfs'"),
        ({"block": 1000}, "parameter block: 1000 is not allowed; allowed: 1024, 4096"),
        ({"block": "4096"}, "parameter block: '4096' is not allowed; allowed: 1024, 4096"),
        ({"barrier": 1}, "parameter barrier: 1 is not allowed; allowed: False, True"),
        (
            {"fs": "xfs"},
            "inode = 256: not active here, its condition is 'fs == \"ext4\"'; leave it out",
        ),
        ({"inode": None}, "parameter inode: None is not allowed"),
        (
            {"inode": 2048, "block": 1024},
            "'inode <= block' is broken by inode = 2048, block = 1024; change one",
        ),
    ],
)
def test_invalid_configurations_are_explained(change, message):
    with pytest.raises(SpaceError) as caught:
        SMALL.validate({**SMALL.default(), **change})
    assert message in caught.value.message
    assert not SMALL.is_valid({**SMALL.default(), **change})


def test_a_missing_parameter_is_named():
    values = dict(SMALL.default())
    del values["commit"]
    with pytest.raises(SpaceError, match=r"parameter commit: missing; give it a value, e\.g\. 5"):
        SMALL.validate(values)


def test_validate_gives_the_canonical_configuration():
    values = {"commit": 5.0, "barrier": True, "inode": 256, "block": 4096.0, "fs": "ext4"}
    configuration = SMALL.validate(values)
    assert list(configuration) == ["fs", "block", "inode", "barrier", "commit"]
    assert configuration.text == SMALL.default().text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space((SMALL["fs"], SMALL["fs"])), "parameter fs appears twice"),
        (lambda: Space((SMALL["inode"],)), "parameter inode: when 'fs == \"ext4\"': unknown parameter 'fs'"),
        (lambda: Space(SMALL.parameters, ("blok < 3",)), "unknown parameter 'blok'; known: fs, block"),
        (lambda: Space(SMALL.parameters, ("block <",)), "constraint: formula 'block <', position 8"),
        (lambda: Space(SMALL.parameters, ("1 < 2",)), "mentions no parameter"),
        (
            lambda: Space(SMALL.parameters, ("block",)).count(),
            "block = 1024: block is 1024, not true",
        ),
        (lambda: Space(SMALL.parameters, ("fs < 3",)).count(), "'<' orders numbers, not \"ext4\" and 3"),
        (
            lambda: Space(SMALL.parameters, ("1 / (block - 1024) < 3",)).count(),
            "'/' of 1, 0 has no",
        ),
        (
            lambda: Space(
                (
                    boolean("a", default=True, cost=COST, when="b"),
                    boolean("b", default=True, cost=COST, when="a"),
                )
            ).count(),
            "conditions must not depend on each other in a circle: a: when = ",
        ),
        (
            lambda: Space(
                (
                    floating("x", (0, 1), default=0, cost=COST),
                    boolean("a", default=True, cost=COST, when="x > 0"),
                )
            ).count(),
            "x has more than 4096 values",
        ),
        (lambda: SMALL.constrain("commit > 60"), "constraint 'commit > 60' cannot be satisfied; drop"),
        (
            lambda: SMALL.pin({"inode": 2048, "block": 1024, "fs": "ext4"}),
            "constraint 'inode <= block' cannot be satisfied with inode = 2048, block = 1024",
        ),
        (
            lambda: SMALL.constrain("commit >= 30", "barrier", "commit < 30"),
            "constraints 'commit >= 30', 'commit < 30' cannot be satisfied together",
        ),
        (
            lambda: Space(SMALL.parameters, ("commit >= 30",), allow_weaker=SMALL.allow_weaker).check(),
            "defaults: constraint 'commit >= 30'",
        ),
        (lambda: SMALL.pin({"block": 512}), "pinned: parameter block: 512 is not allowed"),
        (lambda: SMALL.pin({"blocks": 512}), "pinned: unknown parameter 'blocks'"),
        (lambda: SMALL.restrict(["remnt"]), "'remnt' is not a change cost; allowed: dyn-kernel, dyn-app"),
        (lambda: SMALL.restrict([4]), "4 is not a change cost"),
        (lambda: SMALL.restrict([True]), "True is not a change cost"),
        (lambda: SMALL.restrict([0], {"block": 512}), "parameter block: 512 is not allowed"),
        (lambda: SMALL.permit_weaker(["speed"]), "'speed' is neither a guarantee"),
        (lambda: SMALL.permit_weaker(["fs=ext4"]), "'fs=ext4' weakens nothing"),
        (lambda: SMALL.permit_weaker(["fz=ext4"]), "unknown parameter 'fz'"),
        (lambda: SMALL.permit_weaker([]).pin({"commit": 60}), "add 'commit=60' to allow_weaker"),
        (lambda: SMALL.forbid({}), "the combination is empty"),
        (lambda: SMALL.forbid({"fs": "zfs"}), "parameter fs: 'zfs' is not allowed"),
        (lambda: SMALL.only("fs", []), "parameter fs: values: the list is empty"),
        (lambda: SMALL.only("fs", ["xfs"]), "parameter fs: default 'ext4' is not allowed; allowed: 'xfs'"),
        (lambda: SMALL.with_defaults({"fs": "zfs"}), "parameter fs: 'zfs' is not allowed"),
        (
            lambda: SMALL.with_defaults({"block": 1024, "inode": 2048}),
            "defaults: constraint 'inode <= block'",
        ),
        (lambda: SMALL["blok"], "unknown parameter 'blok'"),
    ],
)
def test_impossible_spaces_are_refused_in_one_line(make, message):
    with pytest.raises(SpaceError) as caught:
        make()
    assert message in caught.value.message
    assert "\n" not in caught.value.message


# Restricting.


def test_pins():
    pinned = SMALL.pin({"fs": "xfs", "commit": 30})
    assert {configuration["fs"] for configuration in pinned.enumerate()} == {"xfs"}
    assert pinned.count() == 2 * 2
    with pytest.raises(SpaceError, match="parameter fs = ext4: pinned at xfs"):
        pinned.validate(SMALL.default())
    assert pinned.default() == Configuration({"fs": "xfs", "block": 4096, "barrier": True, "commit": 30})


def test_pins_that_break_the_defaults_move_them_to_the_nearest_valid():
    space = SMALL.pin({"block": 1024}).pin({"fs": "ext4"})
    assert space.default()["inode"] == 256
    space = SMALL.pin({"inode": 2048, "fs": "ext4"})
    assert space.default()["block"] == 4096


def test_only_what_a_pin_touches_may_move_the_default():
    with pytest.raises(SpaceError, match="the defaults: constraint 'commit >= 30' is broken by commit = 5"):
        SMALL.pin({"fs": "xfs"}).constrain("commit >= 30").default()
    linked = SMALL.constrain("commit >= 30 or block == 4096")
    assert linked.pin({"block": 1024}).default()["commit"] == 30


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_the_default_is_the_default_where_it_is_valid(space):
    if not satisfiable(space):
        return
    known = {}
    for parameter in space.parameters:
        active = parameter.condition is None or parameter.condition.holds(known) is True
        known[parameter.name] = parameter.default if active else None
    defaults = {name: value for name, value in known.items() if value is not None}
    if space.is_valid(defaults):
        assert space.default() == Configuration(defaults)
    else:
        with pytest.raises(SpaceError, match="the defaults: constraint"):
            space.default()


def test_costs_that_are_not_allowed_pin_at_the_current_or_default_value():
    space = SMALL.restrict(["remount", "dyn-kernel"])
    assert space.pinned == {"fs": "ext4", "block": 4096, "inode": 256}
    assert space.count() == 6
    space = SMALL.restrict(["remount"], {"fs": "xfs", "block": 1024})
    assert {(c["fs"], c["block"]) for c in space.enumerate()} == {("xfs", 1024)}
    assert SMALL.restrict([0, 1, 2]).pinned == SMALL.restrict(["remount"]).pinned
    assert SMALL.restrict(["reformat-restore"]).pinned == {"barrier": True, "commit": 5}
    assert SMALL.pin({"block": 1024}).restrict(["remount"]).pinned["block"] == 1024


@given(spaces(), spaces())
@settings(max_examples=30, deadline=None)
def test_restricting_never_adds_a_configuration(space, other):
    allowed = sorted({parameter.cost for parameter in other.parameters})
    if not satisfiable(space):
        return
    try:
        restricted = space.restrict(allowed)
    except SpaceError:
        return
    for configuration in restricted.enumerate():
        assert space.is_valid(configuration)
        for name, value in configuration.items():
            assert space[name].cost in allowed or value == space[name].default


def test_values_that_promise_less_are_excluded_unless_named():
    safe = SMALL.permit_weaker([])
    assert {c["barrier"] for c in safe.enumerate()} == {True}
    assert {c["commit"] for c in safe.enumerate()} == {5}
    with pytest.raises(
        SpaceError, match="weakens consistency and durability against the default; add 'barrier=false'"
    ):
        safe.validate({**SMALL.default(), "barrier": False})
    assert {c["commit"] for c in SMALL.permit_weaker(["durability"]).enumerate()} == {5, 30, 60}
    assert {c["barrier"] for c in SMALL.permit_weaker(["durability"]).enumerate()} == {True}
    both = SMALL.permit_weaker(["durability", "consistency"])
    assert {c["barrier"] for c in both.enumerate()} == {True, False}
    assert {c["commit"] for c in SMALL.permit_weaker(["commit=60"]).enumerate()} == {5, 60}
    assert both.count() == SMALL.count()


@pytest.mark.parametrize("policy", [{}, {"allow_weaker": ()}, {"allow_weaker": None}])
def test_a_space_permits_nothing_weaker_unless_told(policy):
    bare = Space(SMALL.parameters, SMALL.constraints, **policy)
    assert bare == SMALL.permit_weaker([])
    assert bare.domain("commit").values == (5,)
    assert not any(bare.weakened(configuration) for configuration in bare.enumerate())
    with pytest.raises(SpaceError, match="pinned: parameter commit = 60: weakens durability"):
        Space(SMALL.parameters, SMALL.constraints, {"commit": 60}, **policy)


def test_every_guarantee_together_permits_every_value():
    assert SMALL.allow_weaker == ("durability", "consistency", "integrity", "availability")
    assert all(type(entry) is str for entry in SMALL.allow_weaker)
    assert {c["commit"] for c in SMALL.enumerate()} == {5, 30, 60}
    assert {c["barrier"] for c in SMALL.enumerate()} == {True, False}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (">20", (10, 20)),
        (">=20", (10, 18)),
        ("<14", (14, 30)),
        ("<=14", (16, 30)),
        (">19", (10, 18)),
        ("<15", (16, 30)),
    ],
)
def test_labels_cut_ranges(label, expected):
    x = integer(
        "x", (10, 30), step=2, default=16 if "1" in label else 18, cost=COST, weaker={label: "durability"}
    )
    domain = Space((x,)).domain("x")
    assert (domain.low, domain.high) == expected
    allowed = Space((x,)).permit_weaker(["durability"]).domain("x")
    assert (allowed.low, allowed.high) == (10, 30)


def test_labels_cut_continuous_ranges_and_named_values_stay():
    x = floating("x", (0, 10), default=5, cost=COST, weaker={">=7": "durability", "<1": "integrity"})
    space = Space((x,)).permit_weaker(["x=8"])
    assert space.is_valid({"x": 8})
    assert space.is_valid({"x": 6.999})
    assert space.is_valid({"x": 1})
    assert not space.is_valid({"x": 7})
    assert not space.is_valid({"x": 0.5})


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_forbidding_takes_away_just_the_combination(space):
    if not satisfiable(space):
        return
    first = next(space.enumerate())
    combination = dict(list(first.items())[:2])
    kept = [
        c for c in space.enumerate() if not all(c.get(name) == value for name, value in combination.items())
    ]
    if not combination or not kept:
        return
    assert list(space.forbid(combination).enumerate()) == kept


def test_only_keeps_order_and_kind():
    space = preset("storage-v5").only("block_scheduler", ["bfq", "none"])
    assert space.domain("block_scheduler").values == ("none", "bfq")
    assert space["block_scheduler"].kind == "categorical"


def test_with_defaults_takes_what_a_machine_has():
    space = preset("storage-v5").with_defaults(
        {"block_read_ahead_kb": 2560, "vm_dirty_expire_centisecs": 6000}
    )
    assert space.default()["block_read_ahead_kb"] == 2560
    assert space.domain("block_read_ahead_kb").values == (0, 16, 64, 128, 512, 2048, 2560)
    assert space.permit_weaker([]).is_valid(space.default())


def test_what_a_configuration_weakens():
    configuration = SMALL.default().replaced(barrier=False, commit=60)
    assert SMALL.weakened(configuration) == {
        "barrier": {Guarantee.DURABILITY, Guarantee.CONSISTENCY},
        "commit": {Guarantee.DURABILITY},
    }
    assert SMALL.weakened(SMALL.default()) == {}


# Change.


def test_change_names_parameters_and_the_highest_cost():
    default = SMALL.default()
    assert SMALL.change(default, default).parameters == ()
    assert SMALL.change(default, default).cost is None
    assert SMALL.change(default, default).category is None
    difference = SMALL.change(default, default.replaced(commit=30))
    assert (difference.parameters, difference.cost, difference.category) == (
        ("commit",),
        ChangeCost.REMOUNT,
        1,
    )
    xfs = Configuration({"fs": "xfs", "block": 4096, "barrier": True, "commit": 5})
    difference = SMALL.change(default, xfs)
    assert difference.parameters == ("fs", "inode")
    assert difference.cost is ChangeCost.REFORMAT_RESTORE


def test_categories_are_those_of_table_9_1():
    categories = {cost.value: cost.category for cost in ChangeCost}
    assert categories == {
        "dyn-kernel": 0,
        "dyn-app": 0,
        "app-restart": 1,
        "remount": 1,
        "umount-mount": 1,
        "reboot": 2,
        "bios": 2,
        "reformat-restore": 3,
        "hardware-change": 3,
    }
    assert sorted(ChangeCost, key=lambda cost: cost.rank) == list(ChangeCost)
    assert all(cost.description for cost in ChangeCost)


# The nearest valid configuration.


@given(spaces(), spaces())
@settings(max_examples=30, deadline=None)
def test_nearest_is_valid_and_leaves_valid_ones_alone(space, other):
    if not (satisfiable(space) and satisfiable(other)):
        return
    for wanted in list(other.enumerate())[:20]:
        assert space.is_valid(space.nearest(wanted))
    for configuration in list(space.enumerate())[:20]:
        assert space.nearest(configuration) == configuration


def test_nearest_keeps_what_it_can():
    space = preset("storage-v5")
    configuration = space.default().replaced(fs="xfs", block_size_bytes=1024, block_read_ahead_kb=300)
    nearest = space.nearest(configuration)
    assert nearest["fs"] == "xfs"
    assert nearest["block_size_bytes"] == 1024
    assert nearest["block_read_ahead_kb"] == 128
    assert nearest["xfs_inode_size_bytes"] == 512
    assert "ext_journal_mode" not in nearest


@pytest.mark.parametrize(
    "wanted", [{"x": "junk", "y": None}, {"x": float("nan")}, {"x": True, "z": 1}, {"x": -5}]
)
def test_nearest_bears_anything(wanted):
    space = Space(
        (floating("x", (1, 9), default=4, cost=COST), ordinal("y", (1, 5), default=5, cost=COST)), ("x <= y",)
    )
    assert space.is_valid(space.nearest(wanted))


def test_nearest_leaves_alone_what_broken_constraints_do_not_name():
    wide = {"log": True, "cost": COST}
    space = Space(
        (
            integer("buffers", (16, 10**8), default=128, **wide),
            integer("sorts", (1, 10**8), default=4, special={"0": "none"}, **wide),
            integer("log_low", (1, 10**8), default=80, **wide),
            integer("log_high", (1, 10**8), default=1000, **wide),
            integer("elsewhere", (1, 10**8), default=1, **wide),
        ),
        ("buffers + 20 * sorts <= 10000", "log_low <= log_high"),
    )
    wanted = {"buffers": 5000, "sorts": 1000, "log_low": 50, "log_high": 70, "elsewhere": 123456}
    found = space.nearest(wanted)
    assert {name: found[name] for name in ("log_low", "log_high", "elsewhere")} == {
        "log_low": 50,
        "log_high": 70,
        "elsewhere": 123456,
    }
    assert 128 < found["buffers"] < 5000
    assert 4 < found["sorts"] < 1000
    assert 9000 < found["buffers"] + 20 * found["sorts"] <= 10000
    assert space.nearest({**wanted, "sorts": 0, "buffers": 20000})["sorts"] == 4, (
        "no value is beside a special one"
    )


def test_nearest_moves_ranges_to_where_constraints_hold():
    space = Space(
        (floating("x", (0, 9), default=0, cost=COST), floating("y", (0, 9), default=1, cost=COST)), ("x < y",)
    )
    found = space.nearest({"x": 9, "y": 3})
    assert 9 / 7 - 1e-4 < found["x"] < found["y"] < 9 / 7 + 1e-4, "from the defaults as far as they hold"
    assert space.pin({"x": 5}).default()["y"] > 5


def test_where_every_number_is_weaker_the_special_default_is_all_that_is_left() -> None:
    log = integer(
        "log",
        (16, 1024),
        default=0,
        log=True,
        special={0: "automatic"},
        weaker={">0": "availability"},
        cost="dyn-app",
    )
    space = Space((log,))
    assert len(list(space.enumerate())) == 1
    assert dict(space.default()) == {"log": 0}
    with pytest.raises(SpaceError, match="weakens availability"):
        space.validate({"log": 64})
    assert len(list(Space((log,), allow_weaker=("log=64",)).enumerate())) == 2
    assert Space((log,), allow_weaker=("availability",)).validate({"log": 64})
