"""The page: what it says, and that nothing a user wrote becomes part of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ascar.analysis.report import commands_for, report_page, write_report
from ascar.errors import HistoryError
from ascar.history import History
from ascar.results.trial import Failure, Purpose, TrialState
from ascar.space import ChangeCost, Configuration, Space, categorical, study_space
from ascar.study import Study
from ascar.systems import open_target

if TYPE_CHECKING:
    from pathlib import Path

TEXT = '[study]\nname = "m"\nobjective = "maximize x"\nbudget = "1 s"\n[target]\nkind = "no-such"\n'
VOID = {"meta", "br", "hr", "link", "img", "input"}


class Page(HTMLParser):
    """Tags balanced, ids unique, attributes and text by element."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if given.get("id"):
            self.ids.append(given["id"])
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append((tag, ""))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if dict(attrs).get("id"):
            self.ids.append(dict(attrs)["id"])

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)
        for level in ("h1", "h2", "h3"):
            if level in self.open and self.headings:
                name, said = self.headings[-1]
                self.headings[-1] = (name, said + data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def page_of(run, tmp_path: Path) -> Page:
    path = write_report(run, run.outcome(), tmp_path / "out" / "deep")
    assert path == tmp_path / "out" / "deep" / f"{run.name}-run-{run.id}.html"
    html = path.read_text("utf-8")
    assert html.startswith("<!DOCTYPE html>")
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    check_self_contained(html, page)
    check_accessible(page)
    return page


def check_self_contained(html: str, page: Page) -> None:
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "embed", "base"}
    for _, given in page.tags:
        for name, value in given.items():
            assert not name.startswith("on"), name
            if name in ("src", "href", "xlink:href", "action", "data"):
                assert str(value).startswith("#"), value
    style = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style
    policies = [given["content"] for _, given in page.tags if given.get("http-equiv")]
    assert len(policies) == 1
    assert str(policies[0]).startswith("default-src 'none';")


def check_accessible(page: Page) -> None:
    assert [level for level, _ in page.headings].count("h1") == 1
    assert page.headings[0][0] == "h1"
    for tag, given in page.tags:
        if tag == "th":
            assert given.get("scope") in ("col", "row")
        if tag == "svg":
            assert given.get("role") == "img"
            assert given.get("aria-labelledby") in page.ids
        if tag == "html":
            assert given.get("lang") == "en"


def test_an_improvement(studies, space, make, verdicts, tmp_path):
    run = studies.run(make.search(space, 40), verdicts("improved"))
    page = page_of(run, tmp_path)
    assert "80.1% more throughput (ops/s) than the default" in page.text
    assert "99% interval 77.0% to 83.2% more, p < 0.0001, 5 interleaved runs a side" in page.text
    titles = [title for level, title in page.headings if level == "h2"]
    assert titles == [
        "Recommended configuration",
        "How to apply it",
        "Best and default, measured again",
        "The search",
        "Parameters",
        "What the time went on",
        "Valid for",
        "Trials",
        "Failures",
        "Methods",
    ]
    for said in ("reformat-restore", "memory", "8 GiB", "mkfs failed", f"ascar apply {run.id} --dry-run"):
        assert said in page.text
    assert "The search ended because it was told to" in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) >= 9


def test_the_default_is_fine(studies, space, make, verdicts, tmp_path):
    page = page_of(studies.run(make.search(space, 20), verdicts("default-is-fine")), tmp_path)
    assert "The default is fine" in page.text
    assert "has 0.1% more, 99% interval 5.0% less to 5.2% more, p = 0.93" in page.text
    assert "Keep the default." in page.text
    assert "How to apply it" not in page.text


def test_the_default_is_best(studies, space, make, tmp_path, verdicts):
    trials = [make.trial(n, space.default(), 100.0 + n, Purpose.DEFAULT) for n in (1, 2)]
    fine = replace(verdicts("not-verified"), kind="default-is-fine", note="the search found nothing better")
    page = page_of(studies.run(trials, fine), tmp_path)
    assert "It is the default configuration: nothing needs to be changed." in page.text
    assert "the search found nothing better" in page.text


def test_not_verified(studies, space, make, verdicts, tmp_path):
    page = page_of(studies.run(make.search(space, 20), verdicts("not-verified")), tmp_path)
    assert "Not verified" in page.text
    assert "no gain is claimed" in page.text
    assert "better than the default" not in page.text


def test_a_run_that_has_not_ended(studies, space, make, tmp_path):
    page = page_of(studies.run(make.search(space, 20)), tmp_path)
    assert "Not verified" in page.text
    assert "ascar tune --resume" in page.text


@pytest.mark.parametrize("verdict", [None, "not-verified"])
def test_a_run_without_trials(studies, tmp_path, verdicts, verdict):
    page = page_of(studies.run([], verdict and verdicts(verdict)), tmp_path)
    assert "No trial has a score yet." in page.text
    assert "No trial failed." in page.text


def test_a_run_of_failures_only(studies, space, make, tmp_path):
    trials = [make.failed(n, space.default(), f"reason {n % 2}", f"stderr {n}") for n in range(1, 60)]
    page = page_of(studies.run(trials), tmp_path)
    assert "No trial has a score yet." in page.text
    assert "change: reason 1" in page.text
    assert "and 10 more" in page.text
    assert "stderr 1" in page.text


def test_one_trial(studies, space, make, tmp_path):
    page_of(studies.run([make.trial(1, space.default(), 5.0, Purpose.DEFAULT)]), tmp_path)


def test_weakened_guarantees_are_named(studies, space, make, verdicts, tmp_path):
    unsafe = Configuration({"fs": "ext4", "read_ahead_kb": 128, "barrier": False})
    trials = [make.trial(1, space.default(), 100.0, Purpose.DEFAULT), make.trial(2, unsafe, 600.0)]
    page = page_of(studies.run(trials, verdicts("improved")), tmp_path)
    assert "It promises less than the default: barrier weakens durability." in page.text.replace(
        " :", ":"
    ).replace(":  ", ": ")


def test_minimizing_is_worded_alike(studies, space, make, verdicts, tmp_path):
    text = TEXT.replace("maximize x", "minimize latency_ms_p99")
    page = page_of(studies.run(make.search(space, 10), verdicts("improved"), text), tmp_path)
    assert "minimize latency p99 (ms)" in page.text
    assert "80.1% less latency p99 (ms) than the default" in page.text


def test_an_objective_that_is_a_formula(studies, space, make, verdicts, tmp_path):
    formula = "maximize throughput_ops_per_s / (1 + change_s) - (if(1 < 2, 3, 4))"
    text = TEXT.replace("maximize x", formula)
    trials = [replace(t, metrics={**t.metrics, "change_s": 0.5}) for t in make.search(space, 5)]
    page_of(studies.run(trials, verdicts("improved"), text), tmp_path)


EVIL = (
    "</style></pre><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & \0 \udcff "
    "\N{RIGHT-TO-LEFT OVERRIDE}"
)


def test_hostile_names_stay_text(studies, space, make, verdicts, tmp_path):
    printable = "</title><script>alert('x')</script>"
    hostile = Space(
        (
            categorical(
                "p", [printable, "other"], default="other", cost=ChangeCost.DYN_KERNEL, description=printable
            ),
        )
    )
    studies.space = hostile
    trials = [
        make.trial(n, Configuration({"p": value}), 100.0 * n, Purpose.DEFAULT if n == 1 else Purpose.SEARCH)
        for n, value in enumerate(["other", printable, "other", printable], start=1)
    ]
    trials += [
        replace(make.failed(5, Configuration({"p": printable})), failure=Failure(EVIL, EVIL, EVIL)),
        replace(make.trial(6, Configuration({"p": "other"}), 7.0), unmet=(EVIL,), metrics={EVIL[:70]: 1.0}),
    ]
    text = (
        f"# {printable}\n"
        + '[study]\nname = "m"\nobjective = "maximize x"\nbudget = "1 s"\n[target]\nkind = "no-such"\n'
    )
    machine = {EVIL: {EVIL: [EVIL, None, True, 1.5]}, "x_bytes": -1, "y_bytes": "many"}
    verdict = replace(verdicts("improved"), note=EVIL)
    run = studies.run(trials, verdict, text, machine)
    page = page_of(run, tmp_path)  # which finds scripts, handlers and unbalanced tags
    assert "alert(1)" in page.text
    html = report_page(run, replace(run.outcome(), stopped=EVIL), {EVIL: [EVIL]})
    assert "<script" not in html
    assert "onerror=alert(2)>" not in html
    Page(html)


def test_more_trials_than_a_page_takes(studies, space, make, tmp_path):
    one = make.trial(1, space.default(), 100.0)
    few = {name: value for name, value in one.series.items() if name == "none"}
    trials = [replace(one, number=n, score=float(n), series=few) for n in range(1, 1203)]
    page = page_of(studies.run(trials), tmp_path)
    assert "The best 1,000 of 1,202" in page.text
    assert sum(tag == "tr" for tag, _ in page.tags) < 1100


def test_commands_come_from_the_target(studies, space, make, verdicts, tmp_path):
    run = studies.run(make.search(space, 5), verdicts("improved"))
    html = report_page(run, run.outcome(), {"shell": ["mkfs.xfs /dev/vdb"], "fstab": ["a <b>"], "own": ["x"]})
    page = Page(html)
    assert "mkfs.xfs /dev/vdb" in page.text
    assert "a <b>" in page.text
    assert [title for level, title in page.headings if level == "h3"][:3] == [
        "Shell commands",
        "/etc/fstab",
        "own",
    ]


def test_a_target_that_this_machine_lacks(studies, space, make, verdicts):
    run = studies.run(make.search(space, 5), verdicts("improved"), TEXT)
    lines = commands_for(run, run.outcome())["shell"]
    assert "no-such" in lines[0]
    assert lines[1] == f"ascar export {run.id} --as shell"
    fine = replace(run.outcome(), verdict=verdicts("default-is-fine"))
    assert commands_for(run, fine) == {}


def test_the_commands_are_those_of_export(tmp_path, make, verdicts):
    text = (
        '[study]\nname = "m"\nobjective = "maximize throughput_ops_per_s"\nbudget = "1 s"\n'
        '[target]\nkind = "localfs"\n'
        "[space.parameters.block_read_ahead_kb]\nlow = 64\nhigh = 2560\n"
    )
    study = Study.parse(text)
    target = open_target(study.target)
    run_space = study_space(study, target.space)
    wanted = run_space.nearest({**run_space.default(), "block_read_ahead_kb": 2560})
    assert wanted["block_read_ahead_kb"] == 2560, "the catalogue of the target lists no such value"
    with History(tmp_path / "history.sqlite") as history, history.begin(study, run_space, {}) as run:
        run.finish_trial(make.trial(1, wanted, 100.0))
        run.finish(replace(run.outcome(), verdict=verdicts("improved"), recommended=wanted))
        found = commands_for(run, run.outcome())
        exported = target.commands(wanted, run.space.departures(wanted))
    assert any("2560" in line for line in found["shell"])
    assert found == exported


def test_a_directory_that_cannot_be_written(studies, space, tmp_path):
    run = studies.run([])
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError, match="name another directory"):
        write_report(run, run.outcome(), tmp_path / "file" / "x")


def test_a_report_replaces_an_older_one(studies, space, make, tmp_path):
    run = studies.run(make.search(space, 3))
    first = write_report(run, run.outcome(), tmp_path)
    first.write_text("old")
    assert write_report(run, run.outcome(), tmp_path) == first
    assert first.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_counts_name_the_failed(studies, space, make, tmp_path):
    trials = make.search(space, 20)
    quarantined = replace(trials[-1], number=99, state=TrialState.QUARANTINED, score=None)
    page = page_of(studies.run([*trials, quarantined]), tmp_path)
    assert "23, 3 failed" in page.text


def test_a_sweep(studies, space, make, tmp_path):
    trials = [replace(trial, purpose=Purpose.SWEEP) for trial in make.search(space, 20)]
    run = studies.run(trials)
    default = run.trials()[0]
    outcome = replace(run.outcome(), default=default, recommended=default.configuration)
    page = Page(write_report(run, outcome, tmp_path).read_text("utf-8"))
    assert "default: " in page.text  # marked in the distribution
    assert re.search(r"default 1,001 ", page.text)


def repeated(make, space, runs=3):
    """A sweep: every one of eight configurations some times; ext4 varies most."""
    import numpy as np

    rng = np.random.default_rng(0)
    trials = []
    for _ in range(runs):
        for fs in ("ext4", "btrfs"):
            for size in (0, 128, 1024, 4096):
                drawn = space.validate({"fs": fs, "read_ahead_kb": size, "barrier": True})
                mean = 2000 if fs == "ext4" else 500
                score = mean * rng.normal(1, 0.1 if fs == "ext4" else 0.01)
                trials.append(make.trial(len(trials) + 1, drawn, score, Purpose.SWEEP))
    return trials


def test_repetitions_are_compared_and_parameters_ranked(studies, space, make, tmp_path):
    page = page_of(studies.run(repeated(make, space)), tmp_path)
    titles = [title for level, title in page.headings if level == "h2"]
    assert titles.index("Parameters") + 1 == titles.index("Variation")
    assert "Which of them matter" in [title for level, title in page.headings if level == "h3"]
    assert "8 configurations were measured more than once, 24 runs in all" in page.text
    assert "given those before it (Spectra): fs" in page.text
    assert "slow starts" in page.text  # of every run's readings the first four are warm-up
    drawn = {
        given["aria-label"]
        for tag, given in page.tags
        if str(given.get("aria-label")).startswith("variation: ")
    }
    assert {"variation: boxes", "variation: bands", "variation: cumulative", "variation: windows"} <= drawn


def test_without_repetitions_nothing_is_said_of_variation(studies, space, make, tmp_path):
    page = page_of(studies.run(repeated(make, space, 1)), tmp_path)
    assert "Variation" not in [title for _, title in page.headings]
    assert "Which of them matter" not in [title for _, title in page.headings]
