"""A Lustre client on a stand-in of `lctl`: couplings, roll-back, states of imports, output of versions."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import lctl_stand_in as stand_in
from ascar.catalogues.lustre import lustre
from ascar.errors import StageFailed, StudyError
from ascar.space import identifier
from ascar.systems.lustre.client import LustreClient
from ascar.systems.lustre.lctl import setting_of, told
from ascar.testing import TargetContract
from lctl_stand_in import LustreStandIn

if TYPE_CHECKING:
    from pathlib import Path

SEQUENCES = 10
DIRTY = f"{stand_in.OSC[0]}.max_dirty_mb"
# A process that sets what it is told, says so, and waits to be killed.
CHILD = """
import json, sys
from ascar.systems.lustre.client import LustreClient
with LustreClient(json.loads(sys.argv[1])) as target:
    for changes in json.loads(sys.argv[2]):
        print("set", flush=True)
        target.apply(target.space.validate({**target.space.default(), **changes}))
    print("done", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def client(tmp_path: Path) -> LustreStandIn:
    return LustreStandIn(tmp_path)


def apply(target: LustreClient, **changes: int) -> None:
    target.apply(target.space.validate({**target.space.default(), **changes}))


class TestLustreContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _client(self, client: LustreStandIn) -> None:
        self.client = client

    def make(self) -> LustreClient:
        return LustreClient({**self.client.options, "settings": ["llite.statahead_max"]})

    def options(self) -> dict[str, Any]:
        return {**self.client.options, "settings": ["llite.statahead_max"]}


@pytest.mark.parametrize("name", list(lustre()))
def test_each_setting_and_what_changes_with_it_is_put_back(client: LustreStandIn, name: str) -> None:
    before = client.values
    setting = lustre()[name]
    with LustreClient({**client.options, "settings": [name]}) as target:
        assert {identifier(one) for one in setting.changes} <= set(target.space.names)
        value = 32 if name.startswith("osc.max_rpcs") else setting.range[0] or 1
        if identifier("mdc.max_rpcs_in_flight") in target.space.names:
            apply(target, mdc_max_rpcs_in_flight=4, mdc_max_mod_rpcs_in_flight=3)
        else:
            apply(target, **{identifier(name): value})
        assert client.values != before
    assert client.values == before


def test_what_lustre_raises_without_a_word_stays_where_the_study_has_it(client: LustreStandIn) -> None:
    with LustreClient({**client.options, "settings": ["osc.max_rpcs_in_flight"]}) as target:
        apply(target, osc_max_rpcs_in_flight=64)
        assert client.values[DIRTY] == 32
    raw = ["set_param", f"{stand_in.OSC[0]}.max_rpcs_in_flight=64"]
    assert subprocess.run([client.options["lctl"], *raw], check=True).returncode == 0
    assert client.values[DIRTY] == 256, "the stand-in raises it by itself"


@pytest.mark.parametrize("state", ["EVICTED", "RECOVER", "CONNECTING", "DISCONN"])
def test_nothing_is_set_while_a_target_is_not_connected(client: LustreStandIn, state: str) -> None:
    with LustreClient(client.options) as target:
        client.change(states={stand_in.OSC[1]: state}, sets=0)
        with pytest.raises(StageFailed, match=f"OST0001.*the state is {state}; must be FULL or IDLE"):
            apply(target, osc_max_rpcs_in_flight=16)
        assert json.loads(client.file.read_text())["sets"] == 0
        client.change(states={})


def test_a_trial_in_which_the_client_was_evicted_fails_by_name(client: LustreStandIn) -> None:
    with LustreClient(client.options) as target:
        apply(target, osc_max_rpcs_in_flight=16)
        assert target.sample().counters["osc_wait_s"] == pytest.approx(15)
        client.change(history={stand_in.OSC[2]: [[200, "EVICTED"], [201, "FULL"]]})
        with pytest.raises(StageFailed, match=r"OST0002.*the client was evicted at 200"):
            target.sample()
        apply(target, osc_max_rpcs_in_flight=8)
        target.sample()


@pytest.mark.parametrize("quirk", ["2.17", "fractions"])
def test_output_of_other_versions_is_read(client: LustreStandIn, quirk: str) -> None:
    client.change(quirk=quirk)
    with LustreClient(client.options) as target:
        assert target.read(["osc_max_dirty_mb"]) == {"osc_max_dirty_mb": 32}
        assert target.sample().counters["mdc_requests"] == 20


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("words", "= 'unlimited': must be a whole number"),
        ("no state", "must have one line with its state, has 0"),
    ],
)
def test_what_cannot_be_read_is_named(client: LustreStandIn, quirk: str, words: str) -> None:
    client.change(quirk=quirk)
    with pytest.raises(StageFailed, match=words), LustreClient(client.options):
        pass


def test_devices_that_differ_are_named(client: LustreStandIn) -> None:
    client.change(values={**client.values, DIRTY: 64})
    with pytest.raises(StageFailed, match="as on other devices"), LustreClient(client.options):
        pass


def test_a_value_that_the_server_does_not_allow_fails_the_trial(client: LustreStandIn) -> None:
    before = client.values
    with LustreClient(client.options) as target:
        with pytest.raises(StageFailed, match="max_pages_per_rpc = 16384: is 1024 after set_param") as failed:
            apply(target, osc_max_pages_per_rpc=16384)
        assert "out of range" in failed.value.stderr
    assert client.values == before


def test_lines_before_the_first_parameter_are_none() -> None:
    assert [one.text for one in told("hello\nosc.a-1.stats=\n\x00x=1\n\nosc.b-2.stats=5\n")] == [
        "\x00x=1",
        "5",
    ]


def test_exports_set_and_say_what_makes_them_stay(client: LustreStandIn) -> None:
    target = LustreClient(client.options)
    lines = target.commands(target.space.default(), ("osc_max_dirty_mb",))["shell"]
    assert lines[0] == "lctl set_param 'osc.scratch-*.max_dirty_mb=32'"
    assert lines[1].startswith("# to stay, on the MGS: lctl set_param -P ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"file_system": "a b"}, "target.file_system = 'a b': must be"),
        ({"path": "here"}, "target.path = 'here': must be the absolute path"),
        ({"settings": []}, "must name at least one"),
        ({"settings": ["osc.none"]}, "target.settings: 'osc.none': must be one of"),
    ],
)
def test_mistakes_are_named(client: LustreStandIn, options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        LustreClient({**client.options, **options})
    assert words in caught.value.message


def sequence(seed: int) -> list[dict[str, int]]:
    """Random valid changes of all settings."""
    draw, found = random.Random(seed), []
    for _ in range(draw.randint(1, 3)):
        ahead, rpcs = draw.randint(0, 512), draw.randint(2, 64)
        found.append(
            {
                "osc_max_rpcs_in_flight": draw.randint(1, 256),
                "osc_max_pages_per_rpc": draw.randint(16, 4096),
                "osc_max_dirty_mb": draw.randint(1, 2047),
                "mdc_max_rpcs_in_flight": rpcs,
                "mdc_max_mod_rpcs_in_flight": draw.randint(1, rpcs - 1),
                "llite_max_read_ahead_mb": ahead,
                "llite_max_read_ahead_per_file_mb": draw.randint(0, ahead),
            }
        )
    return found


@pytest.mark.slow
def test_random_sequences_that_are_killed_leave_nothing(client: LustreStandIn, seed: int) -> None:
    for turn in range(SEQUENCES):
        one_that_is_killed(client, SEQUENCES * seed + turn)


def one_that_is_killed(client: LustreStandIn, seed: int) -> None:
    before, draw = client.values, random.Random(seed)
    words = [sys.executable, "-c", CHILD, json.dumps(client.options)]
    words.append(json.dumps(sequence(seed)))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"set\n"
        time.sleep(draw.random())
        child.send_signal(draw.choice([signal.SIGKILL, signal.SIGINT]))
    deadline_s, same_s = time.monotonic() + 30, 0.0
    while same_s < 1.5 and time.monotonic() < deadline_s:
        same_s = same_s + 0.1 if client.values == before else 0.0
        time.sleep(0.1)
    assert client.values == before


def test_the_order_of_writing_knows_every_setting() -> None:
    for full in stand_in.fresh()["values"]:
        assert setting_of(full) in lustre()
