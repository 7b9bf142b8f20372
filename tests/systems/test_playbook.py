"""Playbooks and Patroni's configuration: what is printed, and what the programs that read it make of it."""

from __future__ import annotations

import pytest
import yaml

from ascar.catalogues.postgresql import postgresql
from ascar.errors import InputError
from ascar.space import preset
from ascar.systems.administration import command_lines
from ascar.systems.playbook import Playbook, PlaybookTask, sysctl_task
from ascar.systems.postgresql.statements import forms_of
from ascar.systems.redis.statements import forms_of as forms_of_redis


def test_settings_of_postgresql_are_tasks_and_a_restart_where_one_needs_it() -> None:
    assert forms_of(
        {"work_mem": 8192, "jit": False, "shared_buffers": 262_144}, ("work_mem", "shared_buffers")
    )["ansible"] == [
        '- name: "Settings of PostgreSQL found by ascar"',
        '  hosts: "postgresql"',
        "  become: true",
        "  tasks:",
        '    - name: "work_mem"',
        "      community.postgresql.postgresql_set:",
        '        name: "work_mem"',
        '        value: "8MB"',
        '      become_user: "postgres"',
        '    - name: "shared_buffers"',
        "      community.postgresql.postgresql_set:",
        '        name: "shared_buffers"',
        '        value: "256MB"',
        '      become_user: "postgres"',
        '      notify: "Restart PostgreSQL"',
        "  handlers:",
        '    - name: "Restart PostgreSQL"',
        "      ansible.builtin.service:",
        '        name: "postgresql"',
        '        state: "restarted"',
    ]
    assert "handlers" not in yaml.safe_load("\n".join(forms_of({"jit": False}, ("jit",))["ansible"]))[0]


def test_patroni_is_told_what_it_does_not_set_itself() -> None:
    wanted = {"work_mem": 8192, "wal_log_hints": True, "jit": False, "max_worker_processes": 4}
    lines = forms_of(wanted, tuple(wanted))["patroni"]
    assert lines == [
        "# Left out, because Patroni sets it itself: wal_log_hints",
        "postgresql:",
        "  parameters:",
        '    work_mem: "8192kB"',
        '    jit: "off"',
        '    max_worker_processes: "4"',
    ]
    assert forms_of(wanted, ("wal_log_hints",))["patroni"] == lines[:1]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("shared_buffers", 131_072, "128MB"),
        ("shared_buffers", 131_080, "131080kB"),
        ("max_wal_size", 2048, "2GB"),
        ("checkpoint_timeout", 300, "5min"),
        ("checkpoint_timeout", 301, "301s"),
        ("checkpoint_timeout", 86_400, "1d"),
        ("wal_writer_delay", 200, "200ms"),
        ("autovacuum_vacuum_cost_delay", 2.0, "2ms"),
        ("autovacuum_vacuum_cost_delay", 0.3, "300us"),
        ("random_page_cost", 4.0, "4"),
        ("random_page_cost", 1.5, "1.5"),
        ("wal_buffers", -1, "-1"),
        ("jit", False, "off"),
        ("wal_compression", "lz4", "lz4"),
    ],
)
def test_a_value_is_shown_as_the_server_shows_it(name: str, value: float | str, shown: str) -> None:
    assert postgresql()[name].shown(value) == shown


def test_settings_of_redis_are_a_block_and_config_set_or_a_restart() -> None:
    live = forms_of_redis({"hz": 20, "appendfsync": "no"}, ("hz", "appendfsync"))["ansible"]
    (play,) = yaml.safe_load("\n".join(live))
    assert [task["name"] for task in play["tasks"]] == ["redis.conf", "hz", "appendfsync"]
    block = play["tasks"][0]["ansible.builtin.blockinfile"]
    assert block["block"] == "hz 20\nappendfsync no"
    assert play["tasks"][2]["community.general.redis"] == {
        "command": "config",
        "name": "appendfsync",
        "value": "no",
    }
    assert "handlers" not in play
    restarted = forms_of_redis({"hz": 20, "io_threads": 2}, ("hz", "io_threads"))["ansible"]
    (play,) = yaml.safe_load("\n".join(restarted))
    assert [task.get("notify") for task in play["tasks"]] == ["Restart Redis"]
    assert play["handlers"][0]["ansible.builtin.service"]["name"] == "redis-server"


def test_a_file_system_is_mounted_and_set_but_never_made() -> None:
    space = preset("storage-v5")
    wanted = {"fs": "xfs", "xfs_allocation_groups": 8, "vm_dirty_ratio": 40, "block_read_ahead_kb": 512}
    configuration = space.nearest({**space.default(), **wanted})
    lines = command_lines(configuration, space, tuple(wanted))["ansible"]
    assert lines[0] == "# Make the file system by hand: mkfs.xfs -d agcount=8 /dev/DEVICE"
    (play,) = yaml.safe_load("\n".join(lines))
    sysctl, rule, mount = play["tasks"]
    assert sysctl["ansible.posix.sysctl"]["name"] == "vm.dirty_ratio"
    assert sysctl["ansible.posix.sysctl"]["value"] == "40"
    assert 'ATTR{queue/read_ahead_kb}="512"\n' in rule["ansible.builtin.copy"]["content"]
    assert mount["ansible.posix.mount"]["fstype"] == "xfs"
    assert "mkfs" not in str(play)


def test_without_a_task_there_is_no_playbook() -> None:
    assert Playbook("X", "x", ()).lines() == []
    assert command_lines(preset("storage-v5").default(), preset("storage-v5"), ())["ansible"] == []


@pytest.mark.parametrize("value", ["1\n2", "", " 1", "{{ x }}"])
def test_what_a_playbook_cannot_say_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="cannot be written to"):
        Playbook("X", "x", [sysctl_task("vm.x", value)]).lines()
    with pytest.raises(InputError, match="cannot be written to"):
        Playbook("X", "x", [PlaybookTask("{{ name }}", "a.b.c", {"x": 1})]).lines()
