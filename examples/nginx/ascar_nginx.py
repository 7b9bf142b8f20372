"""The workers of nginx, as a system that ascar tunes offline and while nginx works; it needs no root.

[target]
kind = "nginx"
config = "/etc/nginx/nginx.conf"
status = "http://127.0.0.1/status"      # the page of stub_status: requests become a metric and an indicator
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.quoting import comment, shell_line
from ascar.results.machine import AppliedSetting
from ascar.results.trial import Change
from ascar.space import ChangeCost, Space, boolean, integer, ordinal
from ascar.study import convert
from ascar.systems import Placement, Sample, Starter, Target
from ascar.systems.keeper import Keeper, scratch_directory
from ascar.systems.needs import program_need
from ascar.workspace import Workspace

EVENTS = ("worker_connections", "multi_accept", "accept_mutex")  # directives of the block `events`
TRAITS = {"cost": ChangeCost.DYN_APP}  # nginx reloads its file without losing a connection


class NginxOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "nginx".

    Attributes:
        config: the configuration file of an nginx that runs.
        program: the program nginx.
        status: the address of its status page (stub_status); without it, nginx tells nothing of itself.
    """

    config: str = "/etc/nginx/nginx.conf"
    program: str = "/usr/sbin/nginx"
    status: str | None = None


class Nginx(Target):
    """The workers of an nginx that runs."""

    default_workload = None  # the study names a load, or nginx has one
    starter = Starter(target={"config": '"/etc/nginx/nginx.conf"'})

    def __init__(self, options):
        self.options = convert(options, NginxOptions, "target")
        self.config = Path(self.options.config)
        if not self.config.is_file():
            raise EnvironmentLacks(f"target.config = {self.options.config!r}: no such file")
        if self.options.status is not None and not self.options.status.startswith("http://"):
            raise StudyError(f"target.status = {self.options.status!r}: must begin with http://")
        space = Space(
            (
                integer(
                    "worker_processes",
                    (1, 4 * os.cpu_count()),
                    default=1,
                    native="worker_processes",
                    **TRAITS,
                ),
                ordinal("worker_connections", (64, 256, 512, 768, 1024, 4096), default=512, **TRAITS),
                boolean("multi_accept", default=False, native="multi_accept", **TRAITS),
                boolean("accept_mutex", default=False, native="accept_mutex", **TRAITS),
            ),
            name="nginx",
        )
        self.space = space.with_defaults(
            {name: self._said(name) for name in space.names if self._said(name) is not None}
        )
        self.keeper = self.directory = None
        self.current = self.space.default()

    @classmethod
    def needs(cls):
        return (program_need("nginx", "serve", ("nginx-light", "nginx"), ("nginx",)),)

    def __enter__(self):
        self.held = ExitStack()
        self.keeper = self.held.enter_context(Keeper("nginx", user=True, hold=self.keeps))
        self.directory = self.held.enter_context(scratch_directory(self.keeper, "ascar-nginx-"))
        # Undone in reverse order: first the file, and then nginx reads it again.
        self.keeper.undo_command(self._command("-s", "reload"))
        return self

    def __exit__(self, kind, error, trace):
        self.held.__exit__(kind, error, trace)

    def apply(self, configuration):
        start_s, before = time.monotonic(), self.config.read_text()
        change = self.space.change(self.current, configuration)
        text = before
        for name in change.parameters:
            text = with_directive(text, name, configuration[name])
        self.keeper.file_replace(self.config, text)
        try:
            self._run("-t")
            self._run("-s", "reload")
        except StageFailed:
            self.keeper.file_replace(self.config, before)
            raise
        self.current = configuration
        category = -1 if change.category is None else change.category
        return Change(change.parameters, category, {"reload": time.monotonic() - start_s})

    def health(self, limit_s):
        end_s = time.monotonic() + limit_s
        while self._workers() != self.current["worker_processes"]:
            if time.monotonic() > end_s:
                raise StageFailed("health", f"nginx has {self._workers()} workers after {limit_s:g} s")
            time.sleep(0.02)

    def read(self, names):
        found = {name: self._said(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def sampled(self):
        return frozenset() if self.options.status is None else frozenset({"requests", "connections"})

    def sample(self):
        if self.options.status is None:
            return Sample()
        try:
            with urllib.request.urlopen(self.options.status, timeout=2) as page:  # noqa: S310 - checked above
                active, _, _, requests = map(int, re.findall(r"\d+", page.read(4096).decode())[:4])
        except (OSError, ValueError) as error:
            raise StageFailed("sample", f"target.status = {self.options.status!r}: {error}") from error
        return Sample({"requests": requests}, {"connections": active})

    @property
    def workspace(self):
        return Workspace(self.directory)

    def describe(self):
        return {"target": "nginx", "config": str(self.config)}

    def commands(self, configuration, chosen):
        lines = [comment(f"in {self.config}: {name} {word(configuration[name])};") for name in chosen]
        return {"shell": [*lines, shell_line(self._command("-s", "reload"))] if lines else []}

    @classmethod
    def placement(cls, options, space, configuration, place):
        system = cls(options)
        return Placement(
            tuple(
                AppliedSetting(
                    name, name, str(system.config), word(system.current[name]), word(configuration[name])
                )
                for name in space.departures(configuration)
            )
        )

    def _said(self, name):
        found = re.search(rf"^\s*{name}\s+(\w+)\s*;", self.config.read_text(), re.MULTILINE)
        if found is None:
            return None
        words = {"on": True, "off": False, "auto": os.cpu_count()}
        return words[found[1]] if found[1] in words else int(found[1])

    def _workers(self):
        pid = re.search(r"^\s*pid\s+([^;]+);", self.config.read_text(), re.MULTILINE)
        master = Path(pid[1] if pid else "/run/nginx.pid").read_text().strip()
        children = subprocess.run(
            ["pgrep", "-P", master, "-a"], capture_output=True, text=True, check=False
        ).stdout
        return sum("worker process" in line and "shutting" not in line for line in children.splitlines())

    def _command(self, *words):
        return [self.options.program, "-c", str(self.config), *words]

    def _run(self, *words):
        done = subprocess.run(self._command(*words), capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            raise StageFailed("change", f"nginx {' '.join(words)}: {done.stderr.strip()[-300:]}")


def word(value):
    """A value as nginx writes it."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def with_directive(text, name, value):
    """The text of a configuration with a directive changed, or added where it belongs."""
    line = f"{name} {word(value)};"
    changed, count = re.subn(rf"^(\s*){name}\s+[^;]*;", rf"\g<1>{line}", text, count=1, flags=re.MULTILINE)
    if count:
        return changed
    return (
        re.sub(r"\bevents\s*{", f"events {{\n    {line}", text, count=1)
        if name in EVENTS
        else f"{line}\n{text}"
    )
