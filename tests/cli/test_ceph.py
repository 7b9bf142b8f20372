"""A study of Ceph through the commands: tuned, exported, interrupted, killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from own_server_study import OwnServerStudy
from own_servers import ceph_account, ceph_installed, nothing_is_left

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = """
[study]
name = "objects"
objective = "maximize throughput_ops_per_s"
budget = "15 min"
[target]
kind = "ceph"
directory = "PLACE"
memory = "3 GiB"
replicas = 1
[space]
tuned = ["debug_osd", "debug_bluestore", "osd_op_num_shards", "objecter_inflight_ops"]
[workload]
kind = "rados-bench"
objects = 2000
[measurement]
load_min = "2 s"
load_max = "2 s"
[stop]
trials = 3
[verify]
runs_min = 2
runs_max = 2
"""

pytestmark = pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed, or has no account")


class TestCephStudy(OwnServerStudy):
    kind, text, program = "ceph", TEXT, "ceph"
    smaller: ClassVar = {
        'budget = "10 min"': 'budget = "4 min"',
        "#trials = 100": "trials = 2",
        "#objects = 10000": "objects = 2000",
    }
    searched = ("debug_osd", "osd_op_num_shards")
    forms = ("shell", "ceph-config")
    packages = ("ceph-osd",)
    of_example, ends_within_s = "osd_op_num_shards", 30.0
    account = staticmethod(ceph_account)

    @pytest.mark.slow
    @pytest.mark.cluster
    def test_what_the_how_to_begins_with_tunes_and_exports_and_nothing_is_left(
        self, ascar: Callable[..., Any], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        super().test_what_the_how_to_begins_with_tunes_and_exports_and_nothing_is_left(
            ascar, place, tmp_path, monkeypatch
        )

    @pytest.mark.slow
    def test_it_is_tuned_and_exported_and_nothing_is_left(
        self, ascar: Callable[..., Any], place: Path, study: Path
    ) -> None:
        study.write_text(study.read_text().replace("trials = 3", "trials = 2"))
        tuned = ascar("tune", study, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["complete"] >= 2, tuned.err
        assert "failed" not in tuned.document["counts"], tuned.err
        assert nothing_is_left(place, "ceph")
        exported = ascar("export", "objects", "--as", "ceph-config", "--json").document
        assert len(exported["lines"]) == len(exported["chosen"])

    @pytest.mark.slow
    @pytest.mark.cluster
    def test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(
        self, place: Path, study: Path, seed: int
    ) -> None:
        super().test_interrupted_or_killed_at_any_moment_no_server_and_no_file_is_left(place, study, seed)


def test_init_writes_a_study(ascar: Callable[..., Any]) -> None:
    text = ascar("init", "ceph", "--out", "-").out
    assert 'kind = "ceph"' in text
    assert '#settings = { osd_op_num_shards = 8, debug_osd = "0/0" }' in text
    assert 'kind = "rados-bench"' in text
    live = ascar("init", "ceph", "--online", "--out", "-").out
    assert '#keyring = "/etc/ceph/ceph.client.ascar.keyring"' in live
    assert "osd_client_message_cap" in live
