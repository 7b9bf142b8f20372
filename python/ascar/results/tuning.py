"""Results of `ascar tune`, `sweep`, `report`, `init`, `space` and `explore`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ascar.results.measurement import Count
from ascar.results.outcome import Outcome
from ascar.results.pareto import ParetoPoint
from ascar.space import Configuration


class TuneResult(Outcome, frozen=True, kw_only=True, tag_field="schema", tag="ascar/tune/1"):
    """The outcome of a study.

    Attributes:
        pareto: the Pareto set of a study with several objectives; empty for one objective.
    """

    pareto: tuple[ParetoPoint, ...]


class SweepResult(Outcome, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sweep/1"):
    """The outcome of a sweep.

    Attributes:
        complete: whether every configuration was measured.
        file: the file that the trials were exported to; null without --out.
    """

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
    default_configuration: Configuration
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
