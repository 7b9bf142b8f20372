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


class VerifyResult(Outcome, frozen=True, kw_only=True, tag_field="schema", tag="ascar/verify/1"):
    """What a run came to after another comparison; one of two trials leaves the run itself as it was.

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
        url: the address of the page, with the token that it asks for.
        name: the name of what the page shows; null before the first measurement.
        rows: the number of rows.
        configurations: the number of different configurations among the rows.
        dimensions: the parameters and sources with at least two values.
        metrics: the names of the metrics.
        objective: the objective; null before the first measurement.
        direction: the direction of the objective; null before the first measurement.
    """

    url: str
    name: str | None
    rows: Count
    configurations: Count
    dimensions: tuple[str, ...]
    metrics: tuple[str, ...]
    objective: str | None
    direction: Literal["min", "max"] | None


class CatalogueSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the kernel that ascar may change.

    Attributes:
        name: the name of the setting; `<dev>` stands for the name of a device.
        path: the file of the setting.
        values: the values that are allowed.
        unit: the unit of its numbers; empty for words and plain numbers.
        cost: the cost of a change.
        weaker: the guarantees that values weaken, by relation such as ">3000".
        what: what the setting does.
    """

    name: str
    path: str
    values: str
    unit: str
    cost: str
    weaker: dict[str, str]
    what: str


class CatalogueResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/catalogue/1",
):
    """The settings of the kernel that ascar may change.

    Attributes:
        name: the name of the catalogue.
        settings: the settings.
    """

    name: str
    settings: tuple[CatalogueSetting, ...]


class SpaceResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/space/1",
):
    """What can be tuned: a space document, and what a reader would otherwise have to work out.

    Attributes:
        format: the name of the document's format.
        version: the version of the document's format.
        name: the name of the space.
        parameters: the parameters.
        constraints: the constraints, as formulas; a relation as its parameters and their joint values.
        pinned: the pinned parameters with their values.
        allow_weaker: the values and guarantees that may be weaker than the default.
        default_configuration: a value for every active parameter.
        valid_configurations: the number of valid configurations; null if they cannot be counted.
        valid_configurations_without_weaker: the number of valid configurations without weaker values.
    """

    format: Literal["ascar-space"]
    version: Literal[2, 3]
    name: str
    parameters: tuple[
        Annotated[dict[str, Any], Meta(extra_json_schema={"required": ["name", "kind", "default", "cost"]})],
        ...,
    ]
    constraints: tuple[str | dict[str, Any], ...]
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
        target: the kind of the target.
        file: the file that was written; null if the text was only printed.
        text: the text of the study file.
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
        run_id: the number of the run.
        page: the HTML file.
    """

    run_id: Count
    page: str
