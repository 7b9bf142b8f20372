"""Results of `ascar tune`, `sweep`, `report`, `init`, `space` and `explore`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ascar.results.mean import Count
from ascar.results.trial import ParetoPoint, TrialResult, VerdictReached


class TuneResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/tune/1",
):
    """What a study came to.

    Attributes:
        run_id: in the history.
        best: one evaluation of one configuration.
        default: one evaluation of one configuration.
        recommended: a value for every parameter that is active; one that does not apply is absent.
        verdict: what the last, interleaved comparison of the best configuration with the default
            says.
        stage_s: seconds by stage, over the whole run.
        counts: trials by how they ended.
        stopped: why the search ended.
        machine: what the result is valid for.
        saved_s: seconds of load that abandoning worse configurations saved.
        pareto: of a study with several objectives, its Pareto set; else empty.
    """

    run_id: Count
    study: str
    best: TrialResult | None
    default: TrialResult | None
    recommended: dict[str, str | float | bool]
    verdict: VerdictReached
    stage_s: dict[str, float]
    counts: Annotated[
        dict[str, Count],
        Meta(
            extra_json_schema={
                "propertyNames": {
                    "enum": ["running", "complete", "pruned", "failed", "interrupted", "quarantined"]
                }
            }
        ),
    ]
    stopped: str
    machine: dict[str, Any]
    saved_s: float
    pareto: tuple[ParetoPoint, ...]


class SweepResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sweep/1",
):
    """What a sweep saw.

    Attributes:
        run_id: in the history.
        best: one evaluation of one configuration.
        default: one evaluation of one configuration.
        recommended: a value for every parameter that is active; one that does not apply is absent.
        verdict: what the last, interleaved comparison of the best configuration with the default
            says.
        stage_s: seconds by stage, over the whole run.
        counts: trials by how they ended.
        stopped: why the search ended.
        machine: what the result is valid for.
        saved_s: seconds of load that abandoning worse configurations saved.
        complete: every configuration measured.
    """

    run_id: Count
    study: str
    best: TrialResult | None
    default: TrialResult | None
    recommended: dict[str, str | float | bool]
    verdict: VerdictReached
    stage_s: dict[str, float]
    counts: Annotated[
        dict[str, Count],
        Meta(
            extra_json_schema={
                "propertyNames": {
                    "enum": ["running", "complete", "pruned", "failed", "interrupted", "quarantined"]
                }
            }
        ),
    ]
    stopped: str
    machine: dict[str, Any]
    saved_s: float
    complete: bool
    file: str | None


class ExploreResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/explore/1",
):
    """Where the page is served, and what it shows; printed before the first request is answered.

    Attributes:
        configurations: different ones among the rows.
        dimensions: what was set or given and takes two values at least.
        objective: null while nothing was measured yet.
    """

    url: str
    name: str | None
    rows: Count
    configurations: Count
    dimensions: tuple[str, ...]
    metrics: tuple[str, ...]
    objective: str | None
    direction: Literal["min", "max"] | None


class SpaceResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/space/1",
):
    """What can be tuned: a space document, and what a reader would otherwise have to work out.

    Attributes:
        allow_weaker: values and guarantees that may be weaker than the default.
        default_configuration: a value for every parameter that is active; one that does not apply
            is absent.
        valid_configurations: null where they cannot be counted.
        valid_configurations_without_weaker: those that promise as much as the default does.
    """

    format: Literal["ascar-space"]
    version: Literal[2]
    name: str
    parameters: tuple[
        Annotated[dict[str, Any], Meta(extra_json_schema={"required": ["name", "kind", "default", "cost"]})],
        ...,
    ]
    constraints: tuple[str, ...]
    pinned: dict[str, str | float | bool]
    allow_weaker: tuple[str, ...]
    default_configuration: dict[str, str | float | bool]
    valid_configurations: Count | None
    valid_configurations_without_weaker: Count | None


class InitResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/init/1",
):
    """The study file that was written.

    Attributes:
        file: null: only printed.
    """

    target: str
    file: str | None
    text: str


class ReportResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/report/1",
):
    """Where the report is.

    Attributes:
        page: the HTML file.
    """

    run_id: Count
    page: str
