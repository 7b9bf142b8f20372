"""The learner without messages: what it does with ticks, verdicts, refusals, holds, and what it keeps."""

import numpy as np
import pytest

from ascar.capes.messages.ticks import Assembler, Tick, performance_of
from ascar.capes.process.action_queue import ActionQueue
from ascar.capes.process.discovery import Discovery
from ascar.capes.process.learner_file import read_plan
from ascar.capes.process.observer import ObservationLayout, Observer
from ascar.capes.process.setting_keys import knob_of, position, rules_of, setting_keys_of, values_of
from ascar.capes.process.tick_history import ReplyPart, TickHistory
from ascar.errors import InputError
from ascar.objective import Objective

KNOBS = [
    {"name": "depth", "minimum": 1, "maximum": 100, "choices": [], "step": 1, "change_max": 20},
    {"name": "osc.*.rpcs", "minimum": 1, "maximum": 256, "choices": [], "step": None, "interval_ticks": 5},
    {"name": "sort", "minimum": None, "maximum": None, "choices": ["none", "bfq"], "step": None},
    {"name": "cache", "minimum": None, "maximum": None, "choices": [], "step": None},
]
DEFAULTS = {"depth": 8, "osc.*.rpcs@n1/a": 8, "osc.*.rpcs@n1/b": 8, "sort": "none", "cache": False}
QUICK = "[modern]\nsettle_ticks_max = 2\nfirst_ticks = 4\nvisit_ticks_max = 3\n"


@pytest.fixture
def setting_keys():
    return setting_keys_of(rules_of({"knobs": KNOBS}), DEFAULTS, ["*"], ["osc.*"])


class TestSettingKeys:
    def test_every_key_is_a_knob_and_values_go_there_and_back(self, setting_keys):
        assert [one.key for one in setting_keys] == [
            "cache",
            "depth",
            "osc.*.rpcs@n1/a",
            "osc.*.rpcs@n1/b",
            "sort",
        ]
        assert position(setting_keys, DEFAULTS) == (0, 8, 8, 8, 0)
        found = values_of(setting_keys, (1, 30, 9, 256, 1))
        assert found == {
            "cache": True, "depth": 30, "osc.*.rpcs@n1/a": 9, "osc.*.rpcs@n1/b": 256, "sort": "bfq",
        }  # fmt: skip
        assert position(setting_keys, found) == (1, 30, 9, 256, 1)
        assert setting_keys[2].knob.logarithmic and setting_keys[2].knob.step == 5, "a fiftieth of the range"
        assert not setting_keys[1].knob.logarithmic
        assert [one.knob.group for one in setting_keys] == ["", "", "osc.*.rpcs", "osc.*.rpcs", ""]
        assert knob_of("osc.*.rpcs@n1/a") == "osc.*.rpcs"

    def test_choices_may_be_numbers_and_booleans(self):
        rules = rules_of(
            {
                "knobs": [
                    {"name": "size", "choices": [64, 256, 1024]},
                    {"name": "on", "choices": [False, True]},
                ]
            }
        )
        keys = setting_keys_of(rules, {"size": 256, "on": True}, ["*"], [])
        assert position(keys, {"size": 256.0, "on": True}) == (1, 1)
        assert position(keys, {"size": 64, "on": 1}) is None, "1 is not true"
        assert position(keys, {"size": 65, "on": True}) is None
        assert values_of(keys, (0, 2)) == {"on": False, "size": 1024}

    @pytest.mark.parametrize(
        "strange", [None, "x", [1], {}, float("nan"), True, 1e400], ids=lambda it: repr(it)[:20]
    )
    def test_a_strange_value_is_no_position(self, setting_keys, strange):
        assert position(setting_keys, {**DEFAULTS, "depth": strange}) is None

    def test_a_value_out_of_range_counts_as_its_end(self, setting_keys):
        assert position(setting_keys, {**DEFAULTS, "depth": 500})[1] == 100

    @pytest.mark.parametrize(
        ("chosen", "words"),
        [(["dept"], "'dept' fits no knob"), (["depth", "free"], "knob 'free': has no minimum and maximum")],
    )
    def test_what_cannot_be_turned_is_said(self, chosen, words):
        names = [*KNOBS, {"name": "free"}] if "free" in chosen else KNOBS
        with pytest.raises(InputError, match=words.replace("(", r"\(")):
            setting_keys_of(rules_of({"knobs": names}), {**DEFAULTS, "free": 3}, chosen, [])


class TestActionQueue:
    def there(self, action_queue, now, target, tick):
        """Verdict by verdict until it is over; the steps."""
        steps, action_queue.target = [], target
        while action_queue.target is not None:
            action = action_queue.next(tick, now)
            tick += 1
            if action is not None:
                steps.append(action.set)
                assert action_queue.next(tick, now) is None, "one at a time"
                done = {"id": action.id, "verdict": "applied", "tick": tick, "set": action.set}
                now = action_queue.told(done, now).now
            assert tick < 100
        assert now == target
        return steps

    def test_a_long_way_is_gone_in_steps_as_large_as_is_allowed(self, setting_keys):
        action_queue = ActionQueue(setting_keys, "x")
        now = position(setting_keys, DEFAULTS)
        steps = self.there(action_queue, now, (0, 60, 8, 8, 1), 10)
        assert steps == [{"depth": 28, "sort": "bfq"}, {"depth": 48}, {"depth": 60}]
        assert action_queue.changes == 3

    def test_a_key_is_not_changed_before_its_time(self, setting_keys):
        action_queue = ActionQueue(setting_keys, "x")
        self.there(action_queue, (0, 8, 8, 8, 0), (0, 8, 9, 8, 0), 10)
        action_queue.target = (0, 8, 10, 9, 0)
        action = action_queue.next(13, (0, 8, 9, 8, 0))
        assert action.set == {"osc.*.rpcs@n1/b": 9}, "the other one has another four ticks to go"

    @pytest.mark.parametrize(
        ("verdict", "reason", "kind"),
        [
            ("refused", "range: depth = 9", "refused"),
            ("refused", "rule: depth > 50 (no)", "refused"),
            ("refused", "rate: depth from 3 to 8: allowed is a change of 2", "refused"),
            ("refused", "rejected: not today", "refused"),
            ("failed", "node n1: too deep", "refused"),
            ("failed", "breach: the mean of x was 3", "refused"),
            ("refused", "rate: depth was changed 2 ticks ago: allowed is once in 5 ticks", "dropped"),
            ("refused", "busy: a-3 is on its way", "dropped"),
            ("refused", "holding until tick 9: the mean", "dropped"),
            ("refused", "window: not now", "dropped"),
            ("refused", "node: depth: no node that has it is here", "dropped"),
            ("failed", "no answer from n1", "dropped"),
            ("failed", "killed", "dropped"),
            ("observed", None, "observed"),
        ],
    )
    def test_what_a_setting_is_to_blame_for(self, setting_keys, verdict, reason, kind):
        action_queue = ActionQueue(setting_keys, "x")
        now = (0, 8, 8, 8, 0)
        action_queue.target = (0, 9, 8, 8, 0)
        action = action_queue.next(1, now)
        for foreign in ({}, {"id": []}, {"id": "y-1", "verdict": "refused"}, {"id": action.id, "verdict": 3}):
            assert action_queue.told(foreign, now) is None
        assert action_queue.told({"id": action.id, "verdict": "accepted", "tick": 1}, now) is None
        assert action_queue.in_flight
        end = action_queue.told({"id": action.id, "verdict": verdict, "reason": reason, "tick": 2}, now)
        assert end.kind == kind and end.wanted == (0, 9, 8, 8, 0) and end.final
        assert not action_queue.in_flight and action_queue.target is None
        assert action_queue.told({"id": action.id, "verdict": verdict, "tick": 2}, now) is None, "only once"

    def test_what_nodes_round_is_not_asked_for_again(self, setting_keys):
        action_queue = ActionQueue(setting_keys, "x")
        action_queue.target = (0, 19, 8, 8, 0)
        action = action_queue.next(1, (0, 8, 8, 8, 0))
        told = {"id": action.id, "verdict": "applied", "tick": 2, "set": {"depth": 16}}
        end = action_queue.told(told, (0, 8, 8, 8, 0))
        assert end.now == (0, 16, 8, 8, 0) and end.final and action_queue.target is None

    def test_a_lost_action_is_judged_by_what_is_in_force(self, setting_keys):
        for now, kind in (((0, 9, 8, 8, 0), "applied"), ((0, 8, 8, 8, 0), "dropped")):
            action_queue = ActionQueue(setting_keys, "x")
            action_queue.target = (0, 9, 8, 8, 0)
            action = action_queue.next(1, (0, 8, 8, 8, 0))
            assert action_queue.overdue(10) is None
            assert action_queue.overdue(11) == action.id
            assert action_queue.lost(11, now).kind == kind
            assert not action_queue.in_flight


class TestTicks:
    def part(self, tick, part=0, parts=1, **keys):
        layouts = {"a": ["x", "y"]}
        nodes = {f"n{part}": ["a", [1.0, None]]}
        return {
            "version": 1, "tick": tick, "part": part, "parts": parts, "stored": True, "layouts": layouts,
            "nodes": nodes, "metrics": {"m": 3.0}, "setting": {"depth": 8}, "mode": "automatic",
            "holding": None, "workload": None, **keys,
        }  # fmt: skip

    def test_parts_make_a_tick_and_a_later_one_ends_it(self):
        assembler = Assembler()
        assert assembler.take(self.part(5, 0, 3)) == []
        assert assembler.take(self.part(5, 2, 3)) == []
        (one,) = assembler.take(self.part(5, 1, 3))
        assert one.number == 5 and sorted(one.rows) == ["n0", "n1", "n2"]
        assert assembler.take(self.part(5)) == [], "again"
        assert assembler.take(self.part(4)) == [], "of the past"
        assert assembler.take(self.part(6, 0, 2)) == []
        broken, whole = assembler.take(self.part(7))
        assert (broken.number, sorted(broken.rows), whole.number) == (6, ["n0"], 7)

    def test_a_jump_ahead_needs_a_second_one(self):
        assembler = Assembler()
        assembler.take(self.part(5))
        assert assembler.take(self.part(10**9)) == []
        assert [one.number for one in assembler.take(self.part(6))] == [6]
        assert assembler.take(self.part(10**6)) == []
        assert [one.number for one in assembler.take(self.part(10**6 + 1))] == [10**6 + 1]

    @pytest.mark.parametrize(
        "keys",
        [
            {"tick": -1}, {"tick": 1.5}, {"tick": "7"}, {"tick": 1 << 60}, {"part": 3}, {"parts": 10**9},
            {"version": 2}, {"metrics": []}, {"metrics": {"m": "a"}}, {"setting": {"a": [1]}},
            {"nodes": {"n": ["a"]}}, {"nodes": {"n": ["a", ["x"]]}}, {"holding": 3},
        ],
        ids=repr,
    )  # fmt: skip
    def test_what_is_no_part_is_counted(self, keys):
        assembler = Assembler()
        assert assembler.take({**self.part(7), **keys}) == []
        assert assembler.unreadable == 1
        later = "ticks of version = 2: this ascar reads 1, install matching versions"
        assert assembler.refused == (later if "version" in keys else None)

    def test_rows_of_another_length_are_left_out_and_an_unstored_tick_holds(self):
        (one,) = Assembler().take(self.part(5, nodes={"n": ["a", [1.0]], "k": ["b", [1.0]]}, stored=False))
        assert one.rows == {} and one.holding == "storage"

    @pytest.mark.parametrize(
        ("text", "value"),
        [("maximize a", 2.0), ("minimize a / b", -0.5), ("maximize c", None), ("maximize a / (b - 4)", None),
         ("maximize n", None), ("maximize a > b", None)],
    )  # fmt: skip
    def test_an_objective_without_a_value_was_not_measured(self, text, value):
        found = performance_of(Objective.parse(text), {"a": 2.0, "b": 4.0, "n": None})
        assert found == value or (value is None and (np.isnan(found) or text == "maximize a > b"))


class TestObserver:
    def test_values_come_on_scales_that_stay(self):
        observer = Observer(ObservationLayout.of({"n1": ["x", "y"], "n2": ["x"], "z": ["q"]}, ["n*"], ["*"]))
        assert observer.layout == ObservationLayout(("n1", "n2"), ("x", "y"))
        rows = {"n1": (("y", "x"), (0.0, 1e6)), "n2": (("x",), (1e6,)), "z": (("q",), (1.0,))}
        found = observer.scaled(observer.matrix(rows))
        assert found[0, 0] == found[1, 0] == 0.5 and found[0, 1] == 0 and np.isnan(found[1, 1])
        twice = observer.scaled(observer.matrix({"n1": (("x",), (2e6,))}))
        assert twice[0, 0] == pytest.approx(2 / 3) and np.isnan(twice[1, 0])
        assert (observer.usual == [1e6, 0]).all()
        observer.scaled(observer.matrix({"n1": (("x", "y"), (1e9, -3.0))}))
        assert (observer.usual == [1e9, 3]).all(), "only what is far larger moves a scale"
        odd = observer.scaled(observer.matrix({"n1": (("x", "y"), (None, float("inf")))}))
        assert np.isnan(odd).all()


class System:
    """Performance over a setting, told as ticks; carries actions out like an interface that allows all."""

    def __init__(self, peak):
        self.peak, self.tick = peak, 100
        self.setting = {"depth": 8, "sort": "none"}
        self.rng = np.random.default_rng(1)

    def step(self, **keys):
        self.tick += 1
        value = 1000 - 9 * abs(self.setting["depth"] - self.peak) + 100 * (self.setting["sort"] == "bfq")
        value *= 1 + 0.01 * self.rng.standard_normal()
        rows = {"n1": (("ops",), (value,))}
        return Tick(self.tick, rows, {"ops": value}, dict(self.setting), **keys)

    def do(self, learner, action):
        self.setting |= action.set
        for verdict in ("accepted", "applied"):
            learner.told({"id": action.id, "verdict": verdict, "tick": self.tick + 1, "set": action.set})


@pytest.fixture
def begin(tmp_path):
    def begin(system, text=QUICK):
        path = tmp_path / "learner.toml"
        path.write_text(f"objective = 'maximize ops'\n{text}")
        rules = [KNOBS[0] | {"change_max": None}, KNOBS[2]]
        status = {"knobs": rules, "defaults": {"depth": 8, "sort": "none"}, "setting": {}}
        beginning = Discovery.of(read_plan(path), status)
        for _ in range(5):
            assert beginning.known or beginning.missing()
            beginning.take({"n1": ["ops"]}, system.setting)
        assert not beginning.missing()
        return beginning.learner()

    return begin


def live(system, learner, ticks, **keys):
    for _ in range(ticks):
        action = learner.hear(system.step(**keys))
        if action is not None:
            system.do(learner, action)


def test_it_finds_the_peak_and_goes_on_from_what_it_kept(begin, tmp_path):
    from ascar.capes.process.learner_state import read_state, write_state

    system = System(70)
    learner = begin(system)
    live(system, learner, 150)
    assert abs(system.setting["depth"] - 70) <= 5 and system.setting["sort"] == "bfq"
    report = learner.report()
    assert report["phase"] == "learning" and report["wanted"] == system.setting
    assert report["prediction_error"] < 0.1 and report["baseline"]["ticks"] >= 4
    write_state(tmp_path / "learner.npz", *learner.written())
    again = begin(system)
    assert again.starts == 2 and again.tick == learner.tick
    assert again.report()["changes"] == report["changes"]
    best = again.policy.expected((70.0, 1.0))
    assert best is not None and best.mean == pytest.approx(1100, rel=0.05)
    before = again.action_queue.changes
    live(system, again, 40)
    assert abs(system.setting["depth"] - 70) <= 8 and again.action_queue.changes - before < 12, (
        "no new design"
    )
    assert read_state(tmp_path / "none.npz") is None


def test_while_it_is_held_nothing_is_asked_and_a_setting_that_broke_a_floor_is_left_alone(begin):
    system = System(40)
    learner = begin(system)
    live(system, learner, 30)
    changes = learner.action_queue.changes
    assert changes >= 1
    bad = dict(system.setting)
    system.setting = {"depth": 8, "sort": "none"}  # the interface has put it back
    for _ in range(20):
        assert learner.hear(system.step(holding="holding until tick 9: the mean of ops was 3")) is None
        assert learner.report()["phase"] == "holding"
    assert learner.action_queue.changes == changes
    live(system, learner, 1)
    assert (float(bad["depth"]), float(bad["sort"] == "bfq")) in learner.policy.modern.refused
    refused = len(learner.policy.modern.refused)
    # The kill switch blames nothing.
    live(system, learner, 20)
    system.setting = {"depth": 8, "sort": "none"}
    for _ in range(5):
        learner.hear(system.step(holding="killed"))
    live(system, learner, 1)
    assert len(learner.policy.modern.refused) == refused


def test_a_workload_that_was_announced_has_a_surface_and_a_baseline_of_its_own(begin):
    system = System(70)
    learner = begin(system)
    live(system, learner, 60, workload="morning")
    system.setting, system.peak = {"depth": 8, "sort": "none"}, 20
    live(system, learner, 100, workload="evening")
    assert learner.report()["workload"] == "evening"
    assert abs(system.setting["depth"] - 20) <= 6
    assert set(learner.baseline.values) == {"morning"} and learner.report()["baseline"] is None
    names = {one.name for one in learner.policy.modern.workloads.all()}
    assert {"morning", "evening"} <= names


def test_stored_ticks_of_each_workload_go_to_its_own_surface(begin):
    system = System(70)
    learner = begin(system)
    ticks = np.arange(1000, 1060)
    values = np.where(ticks < 1030, 700.0, 300.0)[:, None].astype(np.float32)
    stored = TickHistory(
        metrics=[ReplyPart({"node": None, "names": ["ops"], "rows": 60}, (ticks, values))],
        settings=[(1000, {"depth": 8, "sort": "none"})],
        workloads=[(1000, "morning"), (1030, "")],
    )
    assert learner.recall(stored) == 60
    learner.policy.recalled()
    names = {one.name for one in learner.policy.modern.workloads.all()}
    assert "morning" in names
    assert set(learner.baseline.values) == {"morning", ""}
    assert np.mean(learner.baseline.values["morning"]) == 700
    assert np.mean(learner.baseline.values[""]) == 300


def test_only_after_the_newest_tick_something_is_decided(begin):
    system = System(70)
    learner = begin(system)
    for _ in range(100):
        assert learner.hear(system.step(), newest=False) is None
    assert learner.hear(system.step()) is None
    old = Tick(50, {}, {"ops": 1.0}, {"depth": 8, "sort": "none"})
    assert learner.hear(old) is None and learner.tick == system.tick


def _spoilt(arrays, change):
    spoilt = dict(arrays)
    change(spoilt)
    return spoilt


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: it.pop("evidence"), "evidence"),
        (lambda it: it.update(settings000=np.zeros((2, 7))), "settings000"),
        (lambda it: it.update(places000=it["places000"] * np.nan), "places000"),
        (lambda it: it.update(places000=-it["places000"]), "places000"),
        (lambda it: it.update(looks000=np.zeros((1, 9))), "looks000"),
        (lambda it: it.update(wandered=np.zeros(9)), "wandered"),
        (lambda it: it.update(refused=np.array(["x"])), "refused"),
        (lambda it: it.update(usual=np.array([-1.0])), "usual"),
        (lambda it: it.update(usual=np.zeros(9)), "usual"),
    ],
)
def test_a_damaged_state_is_refused(begin, tmp_path, change, words):
    from ascar.capes.process.learner_state import write_state

    system = System(70)
    learner = begin(system)
    live(system, learner, 12)
    state, arrays = learner.written()
    write_state(tmp_path / "learner.npz", state, _spoilt(arrays, change))
    with pytest.raises(InputError, match=words):
        begin(system)


def test_a_network_needs_something_to_look_at(begin):
    with pytest.raises(InputError, match=r"indicators = \['none'\]: match no indicator"):
        begin(System(70), "algorithm = 'classic'\nindicators = ['none']\n")
    live(System(70), begin(System(70), f"indicators = ['none']\n{QUICK}"), 10)


def test_a_state_of_another_objective_or_algorithm_is_refused(begin, tmp_path):
    from ascar.capes.process.learner_state import write_state

    system = System(70)
    learner = begin(system)
    live(system, learner, 10)
    write_state(tmp_path / "learner.npz", *learner.written())
    with pytest.raises(InputError, match="algorithm 'modern', not 'classic'"):
        begin(system, "algorithm = 'classic'\n")
    path = tmp_path / "other.toml"
    path.write_text("objective = 'minimize ops'\n")
    with pytest.raises(InputError, match="objective 'maximize ops', not 'minimize ops'"):
        Discovery.of(read_plan(path), {"knobs": KNOBS, "defaults": DEFAULTS})
