"""Scenarios: what is read, what is refused, and how they arrive in the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import ScenarioError
from ascar.simulation import (
    PRESETS,
    Scenario,
    open_scenario,
    parse_scenario,
    preset,
    scenario_of,
    with_settings,
    with_storage,
)
from ascar.simulation import scenario as scenario_sections
from ascar.simulation.reading import FILE_BYTES_MAX, complete, read_scenario
from ascar.starter.keys import keys_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sim"
OF_ANOTHER_PLACE = {"mdtest", "read-ahead-cliff"}
"""Presets that are not of the thesis' set-up."""

LEAST = """
name = "least"
clients = [{ count = 2, workload = "w" }]
[[workloads]]
name = "w"
filesets = [{ name = "f", size_mib = 100 }]
threads = [{ flowops = [{ op = "read" }] }]
"""


@pytest.mark.parametrize("kind", ["mechanical", "flash", "memory"])
def test_a_device_has_the_defaults_that_the_simulator_describes(kind):
    scenario = parse_scenario(f"{LEAST}\n[[servers]]\ndevice = {{ kind = '{kind}' }}\n")
    device = scenario.servers[0].device
    stated = {name: getattr(device, name) for name in device.__struct_fields__}
    assert {"kind": kind} | stated == complete(scenario)["servers"][0]["device"]


def test_every_section_and_key_is_explained():
    for name in scenario_sections.__all__:
        struct = getattr(scenario_sections, name)
        keys = keys_of(struct)
        assert keys and all(key.meaning for key in keys), name
        assert struct.__doc__.partition("Attributes:")[0].strip()


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        ("servers.device", ["mechanical", "flash", "memory"]),
        ("failures", ["slow-server", "dead-server", "network-pause"]),
        (
            "control.controller",
            ["fixed", "aimd", "vegas", "gradient2", "envoy-gradient", "copa", "io-path-tune"],
        ),
        ("servers.queue.write_order", ["arrival", "elevator", "nearest"]),
        (
            "flowops",
            [
                "read", "write", "createfile", "openfile", "closefile", "writewholefile", "readwholefile",
                "appendfile", "appendfilerand", "deletefile", "statfile", "delay",
            ],
        ),
    ],
)  # fmt: skip
def test_every_kind_arrives_in_the_simulator(table, kinds):
    for kind in kinds:
        text = LEAST
        if table == "servers.device":
            text = f'{LEAST}\n[[servers]]\ncount = 1\ndevice = {{ kind = "{kind}" }}\n'
        elif table == "failures":
            text = f'{LEAST}\n[[failures]]\nkind = "{kind}"\nat_s = 1\nfor_s = 1\n'
        elif table == "flowops":
            text = LEAST.replace('op = "read"', f'op = "{kind}", value_s = 0.1')
        scenario = parse_scenario(text)
        if table.startswith(("control", "servers.queue")):
            scenario = with_settings(scenario, [f"{table}={kind}"])
        assert scenario_of(complete(scenario)) == scenario


def test_what_a_file_says_arrives_in_the_simulator_unchanged():
    scenario = with_settings(
        parse_scenario(LEAST), ["control.window=13", "clients.link.bandwidth_mb_per_s=7.5"]
    )
    table = complete(scenario)
    assert table["control"]["window"] == 13
    assert table["clients"][0]["link"] == {"bandwidth_mb_per_s": 7.5}


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_are_the_examples(name):
    example = EXAMPLES / f"{name}.toml"
    text = example.read_text("utf-8")
    assert preset(name) == read_scenario(example) == parse_scenario(text)
    assert preset(name).name == name
    assert text.startswith("# ")
    assert preset(name).description


def test_there_is_an_example_for_every_row_of_the_table_and_for_capes():
    assert set(PRESETS) == {path.stem for path in EXAMPLES.glob("*.toml")}
    rows = {
        "sequential-write", "sequential-read", "random-write", "random-read", "random-shared", "fileserver",
        "btio-b", "btio-c",
    }  # fmt: skip
    assert rows <= set(PRESETS)
    for name in set(PRESETS) - OF_ANOTHER_PLACE:
        if not name.startswith("btio"):
            assert (preset(name).client_count, preset(name).server_count) == (5, 4)


def test_the_thesis_set_up_is_the_same_for_all_rows():
    physics = ("servers", "metadata", "network", "striping", "locks", "control")
    for name in set(PRESETS) - OF_ANOTHER_PLACE:
        assert [getattr(preset(name), key) for key in physics] == [
            getattr(preset("random-write"), key) for key in physics
        ], name


# fmt: off
WRONG = [
    ("= 3", "is not TOML"),
    ("name = 'x'", "clients: missing"),
    (LEAST.replace("count = 2", "count = 'two'"), "clients[0].count = 'two': must be a whole number"),
    (LEAST.replace("count = 2", "count = 2.5"), "clients[0].count = 2.5: must be a whole number"),
    (LEAST.replace("count = 2", "count = true"), "clients[0].count = True: must be a whole number"),
    (LEAST.replace("count = 2", "coutn = 2"), "clients[0].coutn: unknown key"),
    (LEAST.replace("count = 2", "coutn = 2"), "did you mean 'count'?"),
    (LEAST.replace("count = 2", "count = -2"), "clients[0].count = -2: must be from 0"),
    (LEAST.replace("count = 2", "count = 99999999999999999999999"), "must be from 0 to 4294967295"),
    (LEAST.replace("count = 2", "count = 200000"), "200000 clients"),
    (LEAST.replace("count = 2", "count = 0"), "0 clients"),
    (LEAST.replace('workload = "w"', 'workload = "v"'), 'clients[0].workload: no workload is named "v"'),
    (LEAST.replace("= 100", "= nan"), "workloads[0].filesets[0].size_mib = nan: must be a finite"),
    (LEAST.replace("size_mib = 100", "size_mib = -1"), "workloads[0].filesets[0].size_mib"),
    (LEAST.replace(", size_mib = 100", ""), "workloads[0].filesets[0].size_mib: missing; it must be a"),
    (LEAST.replace('op = "read"', 'op = "rad"'), "flowops[0].op = 'rad': must be one of 'appendfile'"),
    (LEAST.replace('[{ op = "read" }]', "[]"), "there is no step"),
    (LEAST.replace('"least"', "3"), "name = 3: must be text, in quotes"),
    (LEAST.replace('"least"', '"a\\nb"'), "must be one line"),
    (LEAST.replace('"least"', '"\\u001b[31m"'), "must be one line"),
    (f"{LEAST}\n[[servers]]\ndevice = {{ rpm = 3 }}", "servers[0].device.kind: missing; it must be one"),
    (f"{LEAST}\n[[servers]]\ndevice = {{ kind = 'tape' }}", "servers[0].device.kind = 'tape': must be one"),
    (
        f"{LEAST}\n[[servers]]\ndevice = {{ kind = 'flash', rpm = 3 }}",
        "servers[0].device.rpm: unknown key; allowed here: capacity_gb, channels",
    ),
    (f"{LEAST}\n[[servers]]\ncount = 2\nthreads = 0", "servers[0].threads: 0 is not between"),
    (f"{LEAST}\n[[servers]]\nlayout = 5", "servers[0].layout = 5: must be a table"),
    (f"{LEAST}\n[control]\ncontroller = 'rules'", "control.rules"),
    (f"{LEAST}\n[control]\nwindow = 1e9", "control.window"),
    (f"{LEAST}\n[control]\nmost_mb_per_s = 1.0", "control.faithful"),
    (f"{LEAST}\n[control]\nleast_mb_per_s = 2.0\nmost_mb_per_s = 1.0", "control.least_mb_per_s"),
    (f"{LEAST}\n[control.extensions]\npiece_kib = 64", "control.faithful"),
    (f"{LEAST}\n[control.extensions]\ntimeout_factor = 1.5", "control.extensions.timeout_factor"),
    (f"{LEAST}\n[[failures]]\nkind = 'slow-server'\nat_s = 1", "failures[0].for_s: missing; it must be a"),
    (f"{LEAST}\n[[failures]]\nkind = 'slow-server'\nat_s = 1\nfor_s = 1\nserver = 4", "failures[0].server"),
    (LEAST + "\n" + "x." * 3000 + "y = 1", ""),
    ("a = " + "[" * 20_000 + "]" * 20_000, "is not TOML"),
]
# fmt: on


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_mistake_is_one_line_that_names_key_value_and_what_is_allowed(text, said):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 600


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "is UTF-16 text"),
        (b"#" * (FILE_BYTES_MAX + 1), "larger than"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path, content, said):
    path = tmp_path / "scenario.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError, match=said):
        read_scenario(path)


def test_devices_and_names_that_are_no_files_are_refused(tmp_path):
    for named in ("/dev/zero", f"{tmp_path}/", "a\0b.toml"):
        with pytest.raises(ScenarioError):
            open_scenario(named)


def test_servers_of_any_scenario_can_have_another_elevator(tmp_path):
    later = open_scenario("random-write@linux-6")
    assert later.name == "random-write@linux-6"
    assert {(one.queue.batch, one.queue.write_expire_ms) for one in later.servers} == {(16, 5000.0)}
    earlier = with_storage(preset("random-write"), "thesis-2014")
    assert {one.queue for one in earlier.servers} == {one.queue for one in preset("random-write").servers}
    own = tmp_path / "a@b.toml"
    own.write_text(PRESET_OF_ONE)
    assert {one.queue.batch for one in open_scenario(f"{own}@linux-6").servers} == {16}
    assert open_scenario(str(own)).name == "one"
    with pytest.raises(
        ScenarioError, match="elevator 'linux-5': must be one of linux-6, thesis-2014; did you mean"
    ):
        open_scenario("random-write@linux-5")
    with pytest.raises(ScenarioError, match="scenario 'nothing'"):
        open_scenario("nothing@linux-6")
    for odd in ("random-write@", "@" * 3000, "@linux-6"):
        with pytest.raises(ScenarioError, match="scenario|elevator"):
            open_scenario(odd)


PRESET_OF_ONE = """
name = "one"
[[clients]]
count = 1
workload = "w"
[[servers]]
count = 2
[[servers]]
count = 1
[[workloads]]
name = "w"
filesets = [{ name = "file", size_mib = 100 }]
[[workloads.threads]]
flowops = [{ op = "read" }]
"""


def test_an_unknown_preset_is_refused_with_what_there_is():
    with pytest.raises(ScenarioError, match="did you mean 'random-write'"):
        open_scenario("random-wrte")


def test_settings_change_single_keys():
    scenario = with_settings(
        preset("random-write"),
        [
            "control.window=16",
            "clients.count=3",
            "servers[0].queue.slots=32",
            "servers.device={ kind = 'flash', channels = 2 }",
            "workloads.threads.flowops.iosize_kib=64",
            "description=as told",
            "clients[0].control.window=4",
        ],
    )
    assert scenario.control.window == 16
    assert scenario.clients[0].count == 3
    assert scenario.servers[0].queue.slots == 32
    assert scenario.servers[0].device.channels == 2
    assert scenario.workloads[0].threads[0].flowops[0].iosize_kib == 64
    assert scenario.description == "as told"
    assert scenario.clients[0].control.window == 4
    assert [control.window for control in scenario.controls] == [16, 4]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("control.window", "must be KEY=VALUE"),
        ("=3", "must be KEY=VALUE"),
        ("control..window=3", "must be KEY=VALUE"),
        ("control.windw=3", "did you mean 'window'"),
        ("contrl.window=3", "there is no 'contrl'"),
        ("clients[7].count=1", "has 1 members"),
        ("control[0].window=1", "control is not a list"),
        ("name.window=1", "name is not a table"),
        ("clients[0]=3", "names a whole table"),
        ("failures.at_s=3", "the scenario has no failures"),
        ("control.window=3\nseed=4", "must be a number"),
        ("seed=" + "9" * 5000, "seed"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(ScenarioError) as caught:
        with_settings(preset("random-write"), [setting])
    assert said in caught.value.message
    assert "\n" not in caught.value.message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    key=st.sampled_from([field for field in Scenario.__struct_fields__ if field != "duration_s"]), value=_JSON
)
def test_whatever_stands_at_a_key_is_taken_or_refused(key, value):
    table = complete(parse_scenario(LEAST))
    message = ""
    try:
        scenario_of({**table, key: value})
    except ScenarioError as error:
        message = error.message
    assert "\n" not in message
