"""The page of `ascar explore`: what it shows, and the read-only server that it comes from."""

from ascar.web.application import application
from ascar.web.exploration import Dimension, Exploration, Metric, NothingYet, RowOrigin
from ascar.web.part import Roles, RowSource, of_run, of_table
from ascar.web.serving import bound, serve
from ascar.web.session import OnlineSubject
from ascar.web.subject import Fixed, HistorySubject, Subject
from ascar.web.token import AccessToken

__all__ = [
    "AccessToken",
    "Dimension",
    "Exploration",
    "Fixed",
    "HistorySubject",
    "Metric",
    "NothingYet",
    "OnlineSubject",
    "Roles",
    "RowOrigin",
    "RowSource",
    "Subject",
    "application",
    "bound",
    "of_run",
    "of_table",
    "serve",
]
