"""The page of `ascar explore`: what it shows, and the read-only server that it comes from."""

from ascar.web.application import application
from ascar.web.exploration import Dimension, Exploration, Metric, NothingYet, Origin
from ascar.web.part import Part, Roles, of_run, of_table
from ascar.web.serving import bound, serve
from ascar.web.session import Watched
from ascar.web.subject import Fixed, Recorded, Subject

__all__ = [
    "Dimension",
    "Exploration",
    "Fixed",
    "Metric",
    "NothingYet",
    "Origin",
    "Part",
    "Recorded",
    "Roles",
    "Subject",
    "Watched",
    "application",
    "bound",
    "of_run",
    "of_table",
    "serve",
]
