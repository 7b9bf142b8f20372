"""The system that docs/howto/system.md shows: it meets the contract, and is tuned like every other."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.testing.systems import TargetContract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.systems import Target

PAGE = Path(__file__).parents[2] / "docs/howto/system.md"
CODE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
SHOWN: dict[str, Any] = {"__name__": "my_package"}
exec(compile(CODE, str(PAGE), "exec"), SHOWN)


class TestSettingsFile(TargetContract):
    @pytest.fixture(autouse=True)
    def at(self, tmp_path: Path) -> None:
        self.file = tmp_path / "settings.json"

    def options(self) -> Mapping[str, Any]:
        return {"file": str(self.file)}

    def make(self) -> Target:
        return SHOWN["SettingsFile"](self.options())


def test_it_is_tuned_and_its_file_is_put_back(
    ascar: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"threads": 1}')
    site = tmp_path / "site"
    info = site / "my_package-0.1.dist-info"
    info.mkdir(parents=True)
    (site / "my_package.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[ascar.systems]\nsettings-file = my_package:SettingsFile\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.py").write_text(
        f"import json; print('rate', 10 * json.load(open({str(file)!r}))['threads'])"
    )
    (tmp_path / "study.toml").write_text(f"""
[study]
name = "own"
objective = "maximize rate"
budget = "20 s"
[target]
kind = "settings-file"
file = "{file}"
[workload]
kind = "command"
argv = ["{sys.executable}", "{tmp_path / "load.py"}"]
[workload.metrics]
rate = 'regex:rate ([0-9]+)'
[stop]
trials = 6
""")
    checked = ascar("check", tmp_path / "study.toml", "--json")
    assert checked.status == 0, checked.err or checked.document["problems"]
    done = ascar("tune", tmp_path / "study.toml", "--json")
    assert done.status in (0, 3), done.err
    assert done.document["best"]["configuration"]["threads"] == 8
    assert file.read_text() == '{"threads": 1}'
    left = ascar("apply", "own", "--dry-run", "--json").document["left_to_you"]
    assert any(f"set threads to 8 in {file}" in command for one in left for command in one["commands"])
