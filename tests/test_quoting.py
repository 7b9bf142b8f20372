"""What is exported says one value, whatever it is: read back by a shell, or by the rules of its format."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.errors import InputError
from ascar.quoting import (
    ansible_word,
    ceph_value,
    comment,
    fstab_field,
    mount_option,
    my_cnf_value,
    postgresql_set_word,
    redis_word,
    rocksdb_value,
    shell_line,
    shell_word,
    sql_literal,
    sql_word,
    sysctl_line,
    tuned_line,
    udev_assignment,
    yaml_word,
)
from ascar.systems.playbook import Playbook, PlaybookTask

HOSTILE = st.one_of(
    st.text(max_size=20),
    st.text(
        st.sampled_from(" \t\n\r\0\x1b;&|<>$`\"'\\{}()[]#%,=*?~!-ab1\u202e\x9b"), min_size=1, max_size=12
    ),
    st.sampled_from(
        ["; touch /x", '", RUN+="/bin/sh', "${f:exec:id}", "exec,suid", "$(id)", "\x1b[2J", "-e"]
    ),
    st.sampled_from(["{{ lookup('pipe', 'id') }}", "{% raw %}", "{# x", "'; DROP TABLE x; --", "default"]),
    st.sampled_from(
        ["yes", "~", "1e3", "!!python/object:x", "- a: b", "a, b", "|", "\ud800", "\x85", "\ufeff"]
    ),
)


MAKERS = (
    shell_word,
    comment,
    fstab_field,
    mount_option,
    redis_word,
    rocksdb_value,
    ceph_value,
    sql_word,
    sql_literal,
    my_cnf_value,
    yaml_word,
    ansible_word,
    postgresql_set_word,
)


def said(make, *values):
    """What a function makes; None where it refuses, in one line."""
    try:
        return make(*values)
    except InputError as error:
        if not error.message.isprintable():
            pytest.fail(repr(error.message))
        return None


@settings(max_examples=25, deadline=None)
@given(st.lists(HOSTILE, min_size=20, max_size=20))
def test_a_shell_reads_each_word_as_it_was(values):
    words = {
        value: word for value in values if "\0" not in value and (word := said(shell_word, value)) is not None
    }
    script = "printf '%s\\0' " + " ".join(words.values())
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == ([value.encode() for value in words] or [b""])
    assert said(shell_line, ["echo", *words]) == " ".join(["echo", *words.values()])


@settings(max_examples=400, deadline=None)
@given(HOSTILE)
def test_every_format_says_one_value_or_refuses(value):
    lines = {make: line for make in MAKERS if (line := said(make, value)) is not None}
    lines |= {
        make: line
        for make in (sysctl_line, udev_assignment, tuned_line)
        if (line := said(make, "queue/name", value)) is not None
    }
    for make, line in lines.items():
        assert all(sign.isprintable() or (make is shell_word and sign in "\n\t") for sign in line)
    if fstab_field in lines:
        field = lines[fstab_field]
        assert not set(field) & set(" \t\n#")
        assert re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field) == value
    if my_cnf_value in lines:
        assert lines[my_cnf_value] == value
        assert not set(value) & set(" #;=\\'\"`()/*,[]")
    if sql_literal in lines:
        inside = lines[sql_literal][1:-1]
        assert "\\" not in inside
        assert "'" not in inside.replace("''", "")
        assert inside.replace("''", "'") == value
    if mount_option in lines:
        assert "," not in lines[mount_option]
    if sysctl_line in lines:
        assert lines[sysctl_line] == f"queue/name = {value}"
    if udev_assignment in lines:
        quoted = re.fullmatch(r'ATTR\{queue/name\}="([^"\\]*)"', lines[udev_assignment])
        assert quoted is not None
        assert re.sub(r"\$\$|%%", lambda two: two[0][0], quoted[1]) == value
        assert not re.search(r"[$%]", re.sub(r"\$\$|%%", "", quoted[1]))
    assert (yaml_word in lines) == (not re.search("[\ud800-\udfff]", value))
    if yaml_word in lines:
        assert yaml.safe_load(lines[yaml_word]) == value
    if ansible_word in lines:
        assert yaml.safe_load(lines[ansible_word]) == value
        assert not {"{{", "{%", "{#"} & {value[at : at + 2] for at in range(len(value))}
    if postgresql_set_word in lines:
        assert lines[postgresql_set_word] == value
        assert re.fullmatch(r"[\w.+-]+", value, re.ASCII)
        assert value.lower() != "default"
    if tuned_line in lines:
        assert lines[tuned_line] == f"queue/name={value}"
        assert "$" not in value


@pytest.mark.parametrize("key", ["", "a b", "a=b", 'a"', "a}", "../a\n", "#a", "-a"])
def test_keys_are_keys(key):
    for make in (sysctl_line, udev_assignment, tuned_line):
        with pytest.raises(InputError):
            make(key, "1")


@settings(max_examples=200, deadline=None)
@given(st.lists(HOSTILE, min_size=2, max_size=2), HOSTILE)
def test_a_playbook_says_what_it_was_made_of_or_is_refused(values, name):
    first, second = values
    task = PlaybookTask(
        name, "a.b.c", {"x": first, "n": 3, "flag": True, "list": [second, {"y": first}]}, "postgres", True
    )
    lines = said(Playbook("X", "x", [task, task], service=second).lines)
    if lines is None:
        assert any(said(ansible_word, value) is None for value in (*values, name))
        return
    assert all(line.isprintable() for line in lines)
    (play,) = yaml.safe_load("\n".join(lines))
    assert play["tasks"][1] == play["tasks"][0]
    assert play["tasks"][0] == {
        "name": name,
        "a.b.c": {"x": first, "n": 3, "flag": True, "list": [second, {"y": first}]},
        "become_user": "postgres",
        "notify": "Restart X",
    }
    assert play["handlers"] == [
        {"name": "Restart X", "ansible.builtin.service": {"name": second, "state": "restarted"}}
    ]
