"""Types are learned under one lock: threads that decode a type for the first time together do not crash."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ascar
from ascar.typed import finite

ROOT = Path(ascar.__file__).parent

# Structs within structs, whose annotations are text: learning one runs Python, so that threads take turns.
RACE = '''
import sys, threading, types
import msgspec
from ascar import typed

SOURCE = """
from __future__ import annotations
import msgspec
from collections.abc import Mapping
from typing import Annotated
""" + "".join(f"""
class Part{n}(msgspec.Struct, frozen=True):
    a: Annotated[int, msgspec.Meta(ge=0)]
    b: Mapping[str, float]
    c: tuple[str, ...] | None = None
    d: dict[str, {'Part%d' % (n - 1) if n else 'int'}] = {{}}
""" for n in range(12))

def use_msgspec(kind):
    msgspec.json.decode(TEXT, type=kind)
    msgspec.convert({"a": 1, "b": {}}, kind)

def use_typed(kind):
    typed.decode(TEXT, kind)
    typed.convert({"a": 1, "b": {}}, kind)

TEXT = b'{"a": 1, "b": {"x": 2.0}, "c": ["y"]}'
use = {"msgspec": use_msgspec, "typed": use_typed}[sys.argv[1]]
sys.setswitchinterval(1e-6)
for round in range(int(sys.argv[2])):
    module = types.ModuleType("made"); sys.modules["made"] = module
    exec(compile(SOURCE, "made", "exec"), vars(module))
    together = threading.Barrier(4)
    def work(kind):
        together.wait()
        use(kind)
    threads = [threading.Thread(target=work, args=(getattr(module, f"Part{n}"),)) for n in (11, 11, 10, 9)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("went well")
'''


def race(how: str, rounds: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RACE, how, str(rounds)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def test_threads_that_learn_a_type_together_do_not_crash():
    done = race("typed", 400)
    assert (done.returncode, done.stdout) == (0, "went well\n"), done.stderr[-2000:]


@pytest.mark.slow
def test_msgspec_by_itself_still_crashes_so_that_the_lock_is_needed():
    """Once this fails, msgspec has got its own lock, and ours may go."""
    assert any(race("msgspec", 300).stdout != "went well\n" for _ in range(30))


def _learns(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name in ("msgspec.json.decode", "msgspec.msgpack.decode"):
        return len(call.args) > 1 or any(one.arg == "type" for one in call.keywords)
    return name in ("msgspec.convert", "msgspec.json.Decoder", "msgspec.msgpack.Decoder")


def test_only_one_module_makes_decoders():
    found: list[str] = []
    for path in ROOT.rglob("*.py"):
        text = path.read_text("utf-8")
        if path == ROOT / "typed.py" or not re.search(r"msgspec\.(convert|(json|msgpack)\.[dD]ecode)", text):
            continue
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        found += [f"{path}: {ast.unparse(call)}" for call in calls if _learns(call)]
    assert not found, "use ascar.typed"


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), True, "3", None])
def test_what_is_no_finite_number_is_none(value):
    assert finite(value) is None


def test_a_number_is_a_float():
    assert [finite(value) for value in (3, -0.5, 0)] == [3.0, -0.5, 0.0]
