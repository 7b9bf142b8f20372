"""Keys set in place in the files of other programs: the value changes, and not a byte beside it."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.systems.program.file_keys import FORMATS, format_of, key_in, with_key

REDIS = "# redis\n\nport 6379\nio-threads 1\nsave 900 1\nsave 300 10\n#io-threads 8\n"
NGINX = "worker_processes  auto; # all\r\nhttp {\r\n\tgzip on;\r\n\tgzip_comp_level 1;\r\n}\r\n"
POSTGRES = "shared_buffers = 128MB\t# min 128kB\nname = 'a # b; c'\n"
INI = "; top\nuser = root\n[mysqld]\nbuffer = 1M ; inline\n\n# about logs\n[log]\nlevel=3\n"
ENV = "# a\nexport SIZE=64\nARGS=\"-m 64 -t 4\"\nQUOTED='a b'\n"
JSON = '{\n  "a": 1,   "list": [ {"x": 1}, 2 ],\n  "deep": { "on": true, "empty": {} }\n}\n'
TOML = (
    'a = 1 # one\n\n[t]\nx = [\n  1, # "]"\n  2,\n]\ns = """two\nlines"""\n\n'
    "[t.deep]\n\"odd key\" = 'v'\n[[i]]\nx = 1\n"
)


@pytest.mark.parametrize(
    ("form", "text", "key", "value", "expected"),
    [
        ("conf", REDIS, "io-threads", 4, REDIS.replace("\nio-threads 1", "\nio-threads 4")),
        ("conf", REDIS, "hz", 10, REDIS + "hz 10\n"),
        ("conf", NGINX, "worker_processes", 2, NGINX.replace("auto;", "2;")),
        ("conf", NGINX, "gzip_comp_level", "9", NGINX.replace("level 1;", "level 9;")),
        ("conf", POSTGRES, "shared_buffers", "1GB", POSTGRES.replace("128MB", "1GB")),
        ("conf", POSTGRES, "name", "'x'", POSTGRES.replace("'a # b; c'", "'x'")),
        ("conf", POSTGRES, "jit", "off", POSTGRES + "jit = off\n"),
        ("conf", "a 1", "b", 2, "a 1\nb 2\n"),
        ("conf", "", "b", 2, "b 2\n"),
        ("ini", INI, "mysqld.buffer", "2M", INI.replace("1M", "2M")),
        ("ini", INI, "user", "me", INI.replace("root", "me")),
        ("ini", INI, "log.level", 5, INI.replace("=3", "=5")),
        ("ini", INI, "mysqld.size", 5, INI.replace("; inline\n", "; inline\nsize = 5\n")),
        ("ini", INI, "new.size", 5, INI + "[new]\nsize = 5\n"),
        ("ini", INI, "other", 5, INI.replace("user = root\n", "user = root\nother = 5\n")),
        ("env", ENV, "SIZE", 128, ENV.replace("64\nARGS", "128\nARGS")),
        ("env", ENV, "ARGS", "-m 8", ENV.replace('"-m 64 -t 4"', '"-m 8"')),
        ("env", ENV, "QUOTED", "plain", ENV.replace("'a b'", "plain")),
        ("env", ENV, "NEW", "a b", ENV + "NEW='a b'\n"),
        ("json", JSON, "a", 2.5, JSON.replace('"a": 1', '"a": 2.5')),
        ("json", JSON, "list.0.x", "s", JSON.replace('"x": 1', '"x": "s"')),
        ("json", JSON, "list.1", False, JSON.replace("}, 2 ]", "}, false ]")),
        ("json", JSON, "deep.on", False, JSON.replace("true", "false")),
        ("json", JSON, "deep.empty.k", 1, JSON.replace('"empty": {}', '"empty": {"k": 1}')),
        ("json", JSON, "deep.new", 1, JSON.replace("{} }", '{}, "new": 1 }')),
        ("toml", TOML, "a", 2, TOML.replace("a = 1", "a = 2")),
        ("toml", TOML, "t.x", 3, TOML.replace('[\n  1, # "]"\n  2,\n]', "3")),
        ("toml", TOML, "t.s", "z", TOML.replace('"""two\nlines"""', '"z"')),
        ("toml", TOML, "t.deep.odd key", True, TOML.replace("'v'", "true")),
        ("toml", TOML, "t.y", 0.5, TOML.replace('lines"""\n', 'lines"""\ny = 0.5\n')),
        ("toml", TOML, "b", 1, TOML.replace("# one\n", "# one\nb = 1\n")),
        ("toml", TOML, "u.v", 1, TOML + "[u]\nv = 1\n"),
        ("toml", "[t]\nx = 1", "t.y", 1, "[t]\nx = 1\ny = 1\n"),
    ],
)
def test_a_key_is_set_and_everything_else_stays(
    form: str, text: str, key: str, value: object, expected: str
) -> None:
    changed = with_key(form, text, key, value)  # type: ignore[arg-type]
    assert changed == expected
    told = key_in(form, changed, key)
    assert told is not None
    assert told.strip("'") == (json.dumps(value) if isinstance(value, bool) else str(value).strip("'"))
    assert with_key(form, changed, key, value) == changed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "text", "key", "words"),
    [
        ("conf", REDIS, "save", "is set in several places (5, 6)"),
        ("conf", NGINX, "sendfile", "the file has blocks"),
        ("conf", "a 1; b 2;\n", "a", "shares its line"),
        ("conf", "http {\n}\n", "http", "shares its line"),
        ("ini", "a = 1\na = 2\n", "a", "is set in several places"),
        ("env", "A=1\nA=2\n", "A", "is set in several places"),
        ("json", "{", "a", "is not JSON"),
        ("json", "[" * 100_000, "a", "is not JSON"),
        ("json", '{"a": 1, "a": 2}', "a", "stands twice"),
        ("json", '{"a": 1}', "a.b", "neither an object nor a list"),
        ("json", '{"a": []}', "a.0", "is no place in a list of 0"),
        ("json", '{"a": 1}', "b.c", "has no object 'b'"),
        ("toml", "a = ", "a", "is not TOML"),
        ("toml", "a = 1\n", "a.b", "'a' is no table"),
        ("toml", "[[t]]\nx = 1\n", "t.x", "no table"),
        ("toml", "t = { x = 1 }\n", "t.x", "cannot be set"),
    ],
)
def test_what_cannot_be_set_without_harm_is_refused(form: str, text: str, key: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        with_key(form, text, key, 5)


@pytest.mark.parametrize("form", ["conf", "ini", "env"])
def test_a_value_is_one_line(form: str) -> None:
    with pytest.raises(ValueError, match="does not fit in a line"):
        with_key(form, "a = 1\n", "a", "1\nroot = yes")


def test_bytes_that_are_no_text_survive() -> None:
    text = b"# gr\xf6\xdfe\nsize 1\n".decode("utf-8", "surrogateescape")
    changed = with_key("conf", text, "size", 2)
    assert changed.encode("utf-8", "surrogateescape") == b"# gr\xf6\xdfe\nsize 2\n"


def test_a_file_s_name_tells_its_format() -> None:
    names = ("/a/b.json", "x.TOML", "my.cnf", "a.env", ".env", "redis.conf", "a.b.ini", "none", "a.yaml")
    told = ["json", "toml", "ini", "env", "env", "conf", "ini", None, None]
    assert [format_of(name) for name in names] == told


KEYS = st.text("abc_", min_size=1, max_size=5)
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.text(max_size=5), st.floats(-9, 9))
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)


@given(st.dictionaries(KEYS, TREES, max_size=4), KEYS, SCALARS, st.sampled_from([None, 0, 2]))
def test_any_json_is_what_it_was_but_for_the_key(
    table: dict[str, object], key: str, value: int, indent: int | None
) -> None:
    changed = with_key("json", json.dumps(table, indent=indent), key, value)
    assert json.loads(changed) == {**table, key: value}


@given(st.text(max_size=60), st.text(min_size=1, max_size=8), st.sampled_from(FORMATS))
def test_any_text_is_set_or_refused_in_a_line(text: str, key: str, form: str) -> None:
    try:
        changed = with_key(form, text, key, 7)
    except ValueError:
        return
    if form == "toml":
        tomllib.loads(changed)
