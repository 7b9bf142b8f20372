"""What is served: the page, its data, how a run stands, and files that were dropped on the page."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ascar.errors import AscarError, InputError
from ascar.results.encode import json_ready
from ascar.web.dropped import FILE_BYTES_MAX, explored, inspected
from ascar.web.exploration import NothingYet
from ascar.web.guard import RequestGuard
from ascar.web.payload import MEDIA_TYPE, metric_payload, payload
from ascar.web.token import AccessToken, TokenCheck

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.requests import Request

    from ascar.web.subject import Subject

PAGE = Path(__file__).parent / "page"
"""The built page."""
_POLL_S = 1.0
_SILENCE_S = 15.0
_LOOK_S = 0.2


def application(
    subject: Subject, token: AccessToken, host: str = "127.0.0.1", poll_s: float = _POLL_S
) -> Starlette:
    """A read-only server about one subject, for whoever has its token.

    Routes:
        GET /                   the page
        GET /api/table          everything, as columns (`ascar.web.payload`)
        GET /api/metric?name=   one metric's column
        GET /api/events         how the run or session stands, whenever that changes (server-sent events)
        POST /api/inspect       the columns of the table in the body
        POST /api/explore       the table in the body, as columns; nothing is kept

    Args:
        subject: the tables or runs that the server shows.
        token: what every request must carry.
        host: the address that is listened on; it decides which names requests may call it by.
        poll_s: the time between two looks at a run.
    """
    known: dict[str, tuple[int, bytes]] = {}

    async def table(request: Request) -> Response:  # noqa: ARG001
        return await _answer(partial(_table, subject, known), MEDIA_TYPE, yet=True)

    async def metric(request: Request) -> Response:
        name = request.query_params.get("name", "")
        return await _answer(lambda: metric_payload(subject.exploration().metric(name)), MEDIA_TYPE)

    async def events(request: Request) -> Response:
        state = request.app.state
        stream = _events(subject, poll_s, lambda: bool(getattr(state, "ending", False)))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def inspect(request: Request) -> Response:
        content = await _body(request)
        name = _name(request)
        return await _answer(lambda: json.dumps(inspected(content, name)).encode(), "application/json")

    async def explore(request: Request) -> Response:
        content = await _body(request)
        asked = dict(request.query_params)
        name = _name(request)
        return await _answer(lambda: payload(explored(content, name, asked), everything=True), MEDIA_TYPE)

    return Starlette(
        routes=[
            Route("/api/table", table),
            Route("/api/metric", metric),
            Route("/api/events", events),
            Route("/api/inspect", inspect, methods=["POST"]),
            Route("/api/explore", explore, methods=["POST"]),
            Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False)),
        ],
        middleware=[Middleware(RequestGuard, host=host), Middleware(TokenCheck, token=token)],
        exception_handlers={HTTPException: _http_error},
    )


def _table(subject: Subject, known: dict[str, tuple[int, bytes]]) -> bytes:
    """The columns; packed once for each state of the subject."""
    stamp = subject.stamp()
    last = known.get("table")
    if last is None or last[0] != stamp:
        last = known["table"] = stamp, payload(subject.exploration(), version=stamp)
    return last[1]


async def _answer(make: Callable[[], bytes], media_type: str, *, yet: bool = False) -> Response:
    """What `make` makes, in a thread of its own, or an error of ours as one line.

    Args:
        make: may take its time.
        media_type: the media type of the answer.
        yet: whether there may be nothing yet, which is no error: 204.
    """
    try:
        content = await run_in_threadpool(make)
    except AscarError as error:
        if yet and isinstance(error, NothingYet):
            return Response(status_code=204)
        status = 400 if isinstance(error, InputError) else 500
        return JSONResponse({"error": error.message}, status)
    return Response(content, media_type=media_type)


async def _body(request: Request) -> bytes:
    """The whole body.

    Raises:
        HTTPException: it is larger than any table may be.
    """
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > FILE_BYTES_MAX:
            raise HTTPException(
                413, f"the file is larger than {FILE_BYTES_MAX} bytes; give it to `ascar explore --table`"
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _name(request: Request) -> str:
    return request.query_params.get("file", "table")[:200] or "table"


def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _events(subject: Subject, poll_s: float, ending: Callable[[], bool]) -> AsyncGenerator[str]:
    """How the run stands: at once, and whenever it stands differently, until the server ends."""
    yield f"retry: {int(1000 * max(poll_s, 0.1))}\n\n"
    last, silence_s = "", 0.0
    while not ending():
        text = await run_in_threadpool(_event, subject)
        if text != last:
            last, silence_s = text, 0.0
            yield text
        elif silence_s >= _SILENCE_S:  # whoever is gone is found out by writing
            silence_s = 0.0
            yield ": still here\n\n"
        silence_s += poll_s
        waited_s = 0.0
        while waited_s < poll_s and not ending():
            await anyio.sleep(min(_LOOK_S, poll_s))
            waited_s += _LOOK_S


def _event(subject: Subject) -> str:
    try:
        live = subject.live()
        what = "run" if live is None else live["kind"]
        document: dict[str, Any] = {"version": subject.stamp(), what: live}
    except AscarError as error:
        document = {"error": error.message}
    return f"event: standing\ndata: {json.dumps(json_ready(document), ensure_ascii=True)}\n\n"
