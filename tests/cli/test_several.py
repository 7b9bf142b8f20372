"""Studies with several objectives from the command line: document, table and page."""

from __future__ import annotations

from studies import goals


def test_the_document_and_the_page_show_the_set(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(goals(budget="3 min"))
    document = ascar("tune", file, "--json", "--quiet").document
    assert [one["objective"] for one in document["verdict"]["objectives"]] == [
        "maximize throughput_ops_per_s",
        "minimize latency_ms_p99",
    ]
    scores = [one["scores"] for one in document["pareto"]]
    assert len(scores) > 3
    assert scores == sorted(scores, reverse=True)
    assert [latency for _, latency in scores] == sorted((latency for _, latency in scores), reverse=True)
    assert all(low <= score <= high for one in document["pareto"] for score, (low, high) in _known(one))
    shown = ascar("history", "pareto", "goals").out
    assert "maximize throughput_ops_per_s" in shown
    assert "minimize latency_ms_p99" in shown
    assert ascar("report", "goals", "--out", tmp_path / "report").status == 0
    (page,) = (tmp_path / "report").glob("*.html")
    assert "Pareto set" in page.read_text()


def _known(point):
    return [pair for pair in zip(point["scores"], point["intervals"], strict=True) if pair[1] is not None]


def test_one_objective_has_no_set(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(goals('"maximize throughput_ops_per_s"', budget="3 min"))
    document = ascar("tune", file, "--json", "--quiet").document
    assert document["pareto"] == []
    assert document["verdict"]["objectives"] == []
    done = ascar("history", "pareto", "goals")
    assert done.status == 2
    assert "has one objective" in done.err
