# ruff: noqa: E501 - a pair a line
"""Wrong inputs, made from the keys that docs/reference lists: a value that fits the type of none of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"

_ROW = re.compile(r"^\| `([a-z_]+)` \| (.+?) \| (.*?) \| (.*) \|$")
_KIND = re.compile(r'^### \[+(\w+)\]+ kind = "([\w-]+)"$')


@dataclass(frozen=True)
class Key:
    """A key of a study file.

    Attributes:
        table: the table, such as "target".
        kind: the kind of the table; empty where it has none.
        name: the name of the key.
        type: the type in the words of the reference.
        default: the default as the reference shows it.
        meaning: what the reference says of it.
    """

    table: str
    kind: str
    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Broken:
    """A study file with one mistake.

    Attributes:
        label: what is wrong, for people.
        text: the file.
        key: what an error has to name, in full.
        value: texts, one of which the error has to show; empty where there is no value.
    """

    label: str
    text: str
    key: str
    value: tuple[str, ...]


# What the rules above hold for wrong, and is right there.
_RIGHT = {
    "start.study() = 7",
    'target.saved(localfs) = "10"',
    "target.machine_wide(localfs) = true",
    'target.settle(rules) = "0 s"',
    'target.warm_up(simulated) = "0 s"',
}


def study_keys() -> list[Key]:
    """The keys of docs/reference/study-file.md that a search reads."""
    found: list[Key] = []
    table = kind = ""
    for line in (REFERENCE / "study-file.md").read_text("utf-8").splitlines():
        if line.startswith("## A study of the online loop"):
            break
        if headed := re.fullmatch(r"## \[+(\w+)\]+", line):
            table, kind = headed[1], ""
        elif line.startswith("#### "):
            table = kind = ""  # tables inside a table have tests of their own, in tests/systems
        elif headed := _KIND.fullmatch(line):
            table, kind = headed[1], headed[2]
        elif table and (row := _ROW.fullmatch(line)):
            found.append(Key(table, kind, row[1], row[2], row[3], row[4]))
    return found


# What a study needs to be right but for the mistake.
_STUDY = {"name": "s", "objective": "maximize throughput_ops_per_s", "budget": "1 min"}
_SIMULATED = {"kind": "simulated", "metrics": {"throughput_ops_per_s": "1000 - depth"}}
_DEPTH = {"kind": "integer", "low": 1, "high": 100, "default": 50, "cost": "dyn-kernel"}
_NEEDED: dict[tuple[str, str], dict[str, Any]] = {
    ("target", "linux"): {"settings": ["vm.swappiness"]},
    ("target", "program"): {"command": ["/bin/cat"]},
    ("target", "rules"): {"rules": "rules.txt", "scenario": "random-write"},
    ("target", "simulated"): {"metrics": _SIMULATED["metrics"]},
    ("target", "table"): {"file": "dataset:storage-v5-mailserver", "metrics": ["throughput_ops_per_s"]},
    ("workload", "command"): {"argv": ["/bin/true"], "metrics": {"throughput_ops_per_s": "regex:(.)"}},
    ("optimizer", "external"): {"command": ["/bin/cat"]},
    ("target", "lustre"): {"file_system": "scratch", "path": "/var/tmp"},
    ("node", "ssh"): {"name": "n", "host": "localhost"},
}
SPACE_KEYS = {
    "preset": "text",
    "constraints": "list of text",
    "forbidden": "list of table",
    "pinned": "table",
    "tuned": "list of text",
    "allow_cost": "list of text",
    "allow_weaker": "list of text",
    "change_budget": "table",
    "change_cost_s": "table",
    "parameters": "table",
}
PARAMETER_KEYS = {
    "kind": "one of 'integer'",
    "low": "integer",
    "high": "integer",
    "step": "integer",
    "log": "true or false",
    "default": "integer",
    "cost": "one of 'dyn-kernel'",
    "when": "formula",
    "weaker": "table",
    "special": "table",
    "unit": "text",
    "description": "text",
}


def good_tables(table: str, kind: str) -> dict[str, Any]:
    """A study without a mistake, in which a table of that kind has what it needs."""
    tables: dict[str, Any] = {"study": dict(_STUDY), "target": dict(_SIMULATED)}
    tables["space"] = {"parameters": {"depth": dict(_DEPTH)}}
    if kind == "rules":
        tables["study"]["objective"] = "maximize throughput_mb_per_s"
    if table == "target":
        tables["target"] = {"kind": kind, **_NEEDED.get((table, kind), {})}
        if kind != "simulated":
            del tables["space"]
    elif table == "workload":
        tables["target"] = {"kind": "sqlite"}
        del tables["space"]
        tables["workload"] = {"kind": kind, **_NEEDED.get((table, kind), {})}
    elif table == "optimizer":
        tables["optimizer"] = {"kind": kind, **_NEEDED.get((table, kind), {})}
    elif table == "node":
        tables["target"] = {"kind": "linux", "settings": ["vm.swappiness"], "node": "n"}
        del tables["space"]
        tables["node"] = [{"kind": kind, **_NEEDED[table, kind]}]
    return tables


class Raw(str):
    """A value as it stands in the file, where it is not one of JSON: nan, a date."""

    __slots__ = ()


_NUMBERS = [Raw("nan"), Raw("inf"), Raw("-inf"), -1e300, 1e300, -(10**30), 10**30, "7", True, [], {}]
_TEXTS = [7, 1.5, True, Raw("1979-05-27T07:32:00Z"), Raw("nan"), ["x"], {"x": "y"}]
_DURATION = re.compile(r'^`"[\d.]+ (?:s|ms|min|h|MiB|GiB)"`$')


def wrong_values(kind: str, default: str, meaning: str = "") -> list[Any]:
    """Values that are wrong at a key of a type of the reference."""
    if kind.startswith("list of table"):
        return [7, "x", {"x": 1}, [7], [["x"]], [{"no_such_key": 1}]]
    if kind.startswith("list of"):
        inner = [True, {"x": 1}, [["x"]]]
        return [7, {"x": 1}, *([one] for one in inner), [7] if "text" in kind else ["seven"]]
    if kind == "table":
        return [7, "x", True, ["x"], [{"x": 1}], Raw("nan")]
    if kind == "true or false":
        return [7, "true", "yes", "", [], {}, Raw("nan")]
    if kind.startswith("one of"):
        return ["no-such-word", "", "x" * 5000, 7, True, ["x"], {"x": 1}]
    if kind in ("integer", "number"):
        return [*_NUMBERS, *([1.5] if kind == "integer" else [])]
    if kind == "formula":
        return ["depth <", "", "import os", "(" * 500, "x" * 5000, *_TEXTS]
    if kind == "text" and (_DURATION.match(default) or "time" in meaning.split()[:3]):
        return ["10", "", "soon", "10 parsecs", "-5 s", "nan s", "9" * 80 + " s", "0 s", *_TEXTS]
    return list(_TEXTS)


def toml_value(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value)


def toml_of(tables: dict[str, Any]) -> str:
    """Tables as TOML, each in one line, so that any value can stand anywhere."""
    lines: list[str] = []
    for name, table in tables.items():
        if isinstance(table, dict):
            lines.append(f"[{name}]")
            lines += [f"{json.dumps(key)} = {toml_value(value)}" for key, value in table.items()]
        else:
            lines.insert(0, f"{name} = {toml_value(table)}")
    return "\n".join(lines) + "\n"


def shown(value: Any) -> tuple[str, ...]:
    """How an error may show a value."""
    if isinstance(value, Raw):
        return (str(value), str(value)[:10])  # a date is shown as Python writes it
    texts = [repr(value), json.dumps(value), toml_value(value), str(value)]
    if isinstance(value, str) and len(value) > 40:
        texts.append(value[:20])
    if isinstance(value, int) and abs(value) > 2**63:
        texts.append(repr(float(value)))
    for one in value if isinstance(value, list) else []:
        texts += [repr(one), *(str(key) for key in (one if isinstance(one, dict) else []))]
    if isinstance(value, dict) and value:
        texts += [repr(one) for one in (*value, *value.values())]
    return tuple(text for text in texts if text)


def broken_studies() -> list[Broken]:  # noqa: PLR0912 - one case after the other
    """Every mistake of every key."""
    found: list[Broken] = []
    for key in study_keys():
        if (key.table, key.kind) == ("target", "program") and key.name not in ("command", "answer_s"):
            continue  # the other ways exclude `command`; they have tests of their own, in tests/systems
        place = f"{key.table}.{key.name}"
        for value in wrong_values(key.type, key.default, key.meaning):
            if key.table == "node" and key.name == "name":
                continue  # the reference between tables is another mistake
            if isinstance(value, dict) and not value and key.type == "table":
                continue
            tables = good_tables(key.table, key.kind)
            if key.table == "node":
                tables["node"] = [{**tables["node"][0], key.name: value}]
            else:
                tables.setdefault(key.table, {})[key.name] = value
            label = f"{place}({key.kind}) = {toml_value(value)[:40]}"
            if label not in _RIGHT:
                found.append(Broken(label, toml_of(tables), key.name, shown(value)))
        tables = good_tables(key.table, key.kind)
        wrong = f"{key.name}x"
        if key.table == "node":
            tables["node"] = [{**tables["node"][0], wrong: 1}]
        else:
            tables.setdefault(key.table, {})[wrong] = 1
        found.append(Broken(f"unknown {place}x ({key.kind})", toml_of(tables), wrong, ()))
        if key.default == "required" and key.table != "node":
            tables = good_tables(key.table, key.kind)
            tables[key.table].pop(key.name)
            found.append(Broken(f"missing {place} ({key.kind})", toml_of(tables), key.name, ()))
    for name, kind in SPACE_KEYS.items():
        for value in wrong_values(kind, ""):
            tables = good_tables("space", "")
            tables["space"][name] = value
            label = f"space.{name} = {toml_value(value)[:40]}"
            found.append(Broken(label, toml_of(tables), name, shown(value)))
    for name, kind in PARAMETER_KEYS.items():
        for value in wrong_values(kind, ""):
            tables = good_tables("space", "")
            tables["space"]["parameters"]["depth"][name] = value
            label = f"space.parameters.depth.{name} = {toml_value(value)[:40]}"
            found.append(Broken(label, toml_of(tables), name, shown(value)))
    return found


def contradictions(directory: Path) -> list[Broken]:
    """Pairs that exclude each other, tables in the wrong place, keys said twice, directories for files."""
    study, depth = dict(_STUDY), dict(_DEPTH)
    base = {"study": study, "target": dict(_SIMULATED), "space": {"parameters": {"depth": depth}}}
    sqlite = {"study": study, "target": {"kind": "sqlite"}}
    localfs = {"study": study}
    metric = "throughput_ops_per_s"
    place = str(directory)

    def with_space(**keys: Any) -> dict[str, Any]:
        return {**base, "space": {**base["space"], **keys}}

    def with_depth(**keys: Any) -> dict[str, Any]:
        return {**base, "space": {"parameters": {"depth": {**depth, **keys}}}}

    tables: list[tuple[str, dict[str, Any], str, tuple[str, ...]]] = [
        ("load_max below load_min", {**base, "measurement": {"load_min": "9 s", "load_max": "3 s"}},
         "measurement.load_max", ("'3 s'",)),
        ("runs_max below runs_min", {**base, "verify": {"runs_min": 9, "runs_max": 3}}, "verify.runs_max", ("3",)),
        ("low above high", with_depth(low=200), "low", ("200",)),
        ("default outside", with_depth(default=101), "default", ("101",)),
        ("a step that is wider than the range", with_depth(step=1000), "step", ("1000",)),
        ("log from zero", with_depth(log=True, low=0), "low", ("0",)),
        ("values of an integer", with_depth(values=[1, 2]), "values", ()),
        ("an unknown name in a condition", with_depth(when="fs == 'ext4'"), "when", ("'fs'", "fs")),
        ("a condition on itself", with_depth(when="depth > 3"), "depth", ("depth > 3",)),
        ("a constraint that nothing meets", with_space(constraints=["depth > 100"]), "space.constraints",
         ("depth > 100",)),
        ("pinned outside", with_space(pinned={"depth": 101}), "space.pinned", ("101",)),
        ("pinned and unknown", with_space(pinned={"deph": 1}), "space.pinned", ("'deph'",)),
        ("tuned and unknown", with_space(tuned=["deph"]), "space.tuned", ("'deph'",)),
        ("a floor above a ceiling",
         {**base, "guard": {"floor": [{"metric": metric, "minimum": 9}],
                            "ceiling": [{"metric": metric, "maximum": 3}]}}, metric, ("9", "3")),
        ("bounds of one metric", {**base, "study": {**study, "constraints": [f"{metric} > 9", f"{metric} < 3"]}},
         "constraints", (f"{metric} > 9",)),
        ("most and least", {**base, "study": {**study, "objective": [f"maximize {metric}", f"minimize {metric}"]}},
         "study.objective[1]", (f"minimize {metric}",)),
        ("weights of other objectives", {**base, "study": {**study, "weights": [1.0, 2.0]}}, "study.weights",
         ("[1.0, 2.0]",)),
        ("diversity without generations", {**base, "stop": {"diversity": {}}, "optimizer": {"kind": "random"}},
         "stop.diversity", ()),
        ("an empty reason to stop", {**base, "stop": {"any": [{}]}}, "stop.any[0]", ("{}",)),
        ("no objective", {**base, "study": {**study, "objective": []}}, "study.objective", ("0", "[]")),
        ("a load beside virtual time", {**base, "workload": {"kind": "fio"}}, "workload.kind", ("'fio'",)),
        ("a start outside", {**base, "start": {"configurations": [{"depth": 101}]}}, "start.configurations", ("101",)),
        ("an unknown preferred parameter", {**base, "start": {"preferred": {"deph": [1]}}}, "start.preferred",
         ("'deph'",)),
        ("no preferred value", {**base, "start": {"preferred": {"depth": []}}}, "start.preferred.depth", ("[]",)),
        ("a personality and a file", {**sqlite, "workload": {"kind": "filebench", "personality": "mailserver",
                                                             "wml": "x.f"}}, "workload.wml", ()),
        ("a preset and a job", {**sqlite, "workload": {"kind": "fio", "preset": "oltp", "job": "x"}}, "workload.job", ()),
        ("a scale of options", {**sqlite, "workload": {"kind": "fio", "scale": 2, "options": {"rw": "read"}}},
         "workload.scale", ("2.0",)),
        ("an unknown preset of fio", {**sqlite, "workload": {"kind": "fio", "preset": "oltpp"}}, "workload.preset",
         ("'oltpp'",)),
        ("a directory as a job", {**sqlite, "workload": {"kind": "fio", "job": place}}, "workload.job", (place,)),
        ("a directory as a workload", {**sqlite, "workload": {"kind": "filebench", "wml": place}}, "workload.wml",
         (place,)),
        ("a directory as a program", {**sqlite, "workload": {"kind": "command", "argv": [place]}}, "workload.argv[0]",
         (place,)),
        ("no program", {**sqlite, "workload": {"kind": "command", "argv": []}}, "workload.argv", ("[]",)),
        ("an expression that is none", {**sqlite, "workload": {"kind": "command", "argv": ["true"],
                                                               "metrics": {"x": "regex:("}}},
         "workload.metrics.x", ("regex:(",)),
        ("a metric that no formula can name", {**sqlite, "workload": {"kind": "command", "argv": ["true"],
                                                                      "metrics": {"x-y": "regex:(.)"}}},
         "workload.metrics.x-y", ()),
        ("a file as a directory", {**sqlite, "target": {"kind": "sqlite", "directory": "/etc/passwd"}},
         "target.directory", ("/etc/passwd",)),
        ("a directory as a table", {**base, "target": {"kind": "table", "file": place}}, "table", (place,)),
        ("a directory as rules", {**base, "target": {"kind": "rules", "rules": place}}, "target.rules", (place,)),
        ("a directory as an image", {**localfs, "target": {"kind": "localfs", "image": place}}, "target.image", (place,)),
        ("an image too small", {**localfs, "target": {"kind": "localfs", "size": "1 MiB"}}, "target.size", ("'1 MiB'",)),
        ("a size without end", {**localfs, "target": {"kind": "localfs", "size": "9" * 60}}, "target.size", ("9" * 20,)),
        ("an unknown file system", {**localfs, "target": {"kind": "localfs", "file_systems": ["ext5"]}},
         "target.file_systems", ("'ext5'",)),
        ("an unconfirmed device", {**localfs, "target": {"kind": "localfs", "device": "/dev/nosuch"}}, "target.device",
         ("/dev/nosuch",)),
        ("a device that is confirmed as another", {**localfs, "target": {"kind": "localfs", "device": "/dev/nosuch",
                                                                         "confirmed_device": "/dev/other"}},
         "device", ("/dev/nosuch", "/dev/other")),
        ("memory twice", {**localfs, "target": {"kind": "localfs", "memory": "1 GiB", "dataset_to_memory": 2.0}},
         "target.dataset_to_memory", ()),
        ("an unknown user", {**localfs, "target": {"kind": "localfs", "user": "nosuchuser"}}, "target.user",
         ("'nosuchuser'",)),
        ("an unknown setting", {**localfs, "target": {"kind": "linux", "settings": ["vm.swapiness"]}}, "target.settings",
         ("'vm.swapiness'",)),
        ("a control group that is not there", {**localfs, "target": {"kind": "linux", "settings": ["vm.swappiness"],
                                                                     "cgroup": "no.such/group"}}, "target.cgroup",
         ("'no.such/group'",)),
        ("no setting", {**localfs, "target": {"kind": "linux", "settings": []}}, "target.settings", ("[]",)),
        ("a node that is not there", {**localfs, "target": {"kind": "linux", "settings": ["vm.swappiness"],
                                                            "node": "elsewhere"}}, "target.node", ("'elsewhere'",)),
        ("a program that is not there", {**localfs, "target": {"kind": "program", "command": ["/nosuch"]}},
         "target.command", ("/nosuch",)),
        ("a metric that is no formula", {**base, "target": {**_SIMULATED, "metrics": {metric: "1 +"}}},
         f"target.metrics.{metric}", ("'1 +'",)),
        ("too few changes", {**base, "target": {**_SIMULATED, "change_s": [1.0]}}, "target.change_s", ("[1.0]",)),
        ("study twice nested", {**base, "study": {**study, "study": {"name": "x"}}}, "study.study", ()),
        ("a table for a word", {**base, "optimizer": {"kind": {"kind": "random"}}}, "optimizer.kind", ("random",)),
        ("a list for a table", {**base, "measurement": [{"preset": "quick"}]}, "measurement", ("'quick'",)),
        ("a word for a table", {**base, "verify": "strict"}, "verify", ("'strict'",)),
        ("a name that is a path", {**base, "study": {**study, "name": "../x"}}, "study.name", ("'../x'",)),
        ("a long name", {**base, "study": {**study, "name": "x" * 81}}, "study.name", ("x" * 20,)),
        ("an empty name", {**base, "study": {**study, "name": ""}}, "study.name", ("''",)),
        ("a direction that is none", {**base, "study": {**study, "objective": f"increase {metric}"}}, "study.objective",
         (f"increase {metric}",)),
        ("a budget of no length", {**base, "study": {**study, "budget": "0 s"}}, "study.budget", ("'0 s'",)),
        ("a run that is not there", {**base, "start": {"study": 12345}}, "start.study", ("12345",)),
        ("a study that is not there", {**base, "start": {"study": "nosuch"}}, "start.study", ("'nosuch'",)),
        ("an unknown window", {**base, "guard": {"window": [{"from": "25:00", "to": "26:00"}]}}, "guard.window[0]",
         ("25:00",)),
        ("a rule without a reason", {**base, "guard": {"rule": [{"forbid": "depth > 3"}]}}, "guard.rule[0]", ("why",)),
    ]  # fmt: skip
    found = [Broken(label, toml_of(one), key, value) for label, one, key, value in tables]
    text = toml_of(base)
    twice = text.replace('"budget" = "1 min"', '"budget" = "1 min"\n"budget" = "2 min"')
    found.append(Broken("a key twice", twice, "budget", ("2 min",)))
    found.append(Broken("a table twice", text + '[study]\n"seed" = 1\n', "study", ("[study]",)))
    found.append(Broken("a text that does not end", text + '[stop]\n"time" = "9 s\n', "time", ("9 s",)))
    found.append(Broken("no value", text + '[stop]\n"trials" =\n', "trials", ()))
    return found


@dataclass(frozen=True)
class WrongOption:
    """A command line with one wrong option.

    Attributes:
        words: the words of the command line.
        option: the option, as an error has to name it.
        value: the value, likewise.
    """

    words: tuple[str, ...]
    option: str
    value: str


_RUNNABLE = {
    "ascar tune": ("study.toml",),
    "ascar sweep": ("study.toml",),
    "ascar compare": ("--", "true", "true"),
    "ascar measure": ("--", "true"),
    "ascar sim run": ("random-write",),
    "ascar capes game": (),
    "ascar importance": ("--table", "dataset:storage-v5-mailserver", "--objective", "throughput_ops_per_s"),
}
_OPTION = re.compile(r"^\| `(--[a-z-]+)(?:, -\w)? (\S.*?)` \| ")
_WRONG_BY_KIND = {
    "DURATION": ("10", "soon", "", "10 parsecs", "-5 s", "0 s", "9" * 30 + " s"),
    "SHARE": ("x%", "-5%", "nan", "inf", ""),
    "LEVEL": ("2", "x", "nan", "-1", ""),
    "N": ("x", "1.5", "nan", "1e3", "", "-7"),
}


def wrong_options() -> list[WrongOption]:
    """Every mistake of the options of some commands of docs/reference/commands.md."""
    found: list[WrongOption] = []
    command = ""
    for line in (REFERENCE / "commands.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            command = line[3:]
        option = _OPTION.match(line)
        if option is None or command not in _RUNNABLE:
            continue
        name, kind = option[1], option[2].replace("\\|", "|")
        few = re.fullmatch(r"[a-z-]+(?:\|[a-z-]+)+", kind) is not None
        for value in ("no-such-word",) if few else _WRONG_BY_KIND.get(kind, ()):
            if name == "--window" and value in ("1.5", "1e3"):
                continue  # a window need not be whole, and 1000 is said to be out of range
            words = (*command.split()[1:], f"{name}={value}", *_RUNNABLE[command])
            found.append(WrongOption(words, name, value))
        found.append(WrongOption((*command.split()[1:], f"{name}x=1", *_RUNNABLE[command]), f"{name}x", ""))
    return found
