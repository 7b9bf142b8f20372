"""Studies with several objectives from the command line: document, table and page."""

from __future__ import annotations

STUDY = """
[study]
name = "goals"
objective = {objective}
budget = "3 min"
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "100 + 20 * depth", latency_ms_p99 = "5 + depth * depth / 16" }}
noise_relative_sd = 0.03
run_relative_sd = 0.01
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 32
cost = "dyn-kernel"
[space.parameters.useless]
kind = "ordinal"
values = [0, 1, 2]
default = 0
cost = "dyn-kernel"
[optimizer]
kind = "random"
"""
TWO = '["maximize throughput_ops_per_s", "minimize latency_ms_p99"]'


def test_the_document_and_the_page_show_the_set(ascar, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(objective=TWO))
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
    file.write_text(STUDY.format(objective='"maximize throughput_ops_per_s"'))
    document = ascar("tune", file, "--json", "--quiet").document
    assert document["pareto"] == []
    assert document["verdict"]["objectives"] == []
    done = ascar("history", "pareto", "goals")
    assert done.status == 2
    assert "has one objective" in done.err
