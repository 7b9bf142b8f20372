"""What the server answers, and to whom."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import polars as pl
import pytest
from explorer_page import TOKEN, explored, serving

from ascar.errors import InputError, Refused
from ascar.web import AccessToken, Fixed, application, bound
from ascar.web.application import PAGE
from ascar.web.guard import HEADERS, RequestGuard

ROOT = Path(__file__).resolve().parents[2]
FRAME = pl.DataFrame({"mode": ["a", "b"] * 3, "throughput": [1.0, 2.0, 3.0, 4.0, 5.0, 6.5]})


@pytest.fixture
def ask(served):
    address = urlsplit(served(FRAME)).netloc

    def ask(path, method="GET", body=None, **headers):
        with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
            names = {"Cookie": f"{TOKEN.cookie}={TOKEN.text}"}
            names |= {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, names)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    ask.address = address
    return ask


def test_every_answer_carries_what_keeps_others_out(ask):
    for path in ("/", "/explore.js", "/api/table", "/api/metric?name=nothing", "/nothing"):
        _, headers, _ = ask(path)
        for name, value in HEADERS.items():
            assert headers[name] == value, (path, name)
        assert "Access-Control-Allow-Origin" not in headers
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1", "[", "localhost.evil"],
)
def test_a_name_that_is_not_ours_is_refused(ask, host):
    status, headers, content = ask("/api/table", Host=host)
    assert (status, headers["X-Frame-Options"]) == (403, "DENY")
    assert b"ASCX" not in content


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80", "127.0.0.9"])
def test_names_of_this_machine_are_answered(ask, host):
    assert ask("/api/table", Host=host)[0] == 200


ROUTES = ["/", "/explore.js", "/api/table", "/api/metric?name=throughput", "/api/events", "/nothing"]


@pytest.mark.parametrize("cookie", ["", "{0.cookie}=x", "ascar=;=\x01", "other={0.text}"])
@pytest.mark.parametrize("path", ROUTES)
def test_without_the_token_nothing_is_answered(ask, path, cookie):
    cookie = cookie.format(TOKEN)
    for query in ("", "token=", "token=x", "token=\xff", f"other={TOKEN.text}"):
        address = f"{path}{'&' if '?' in path else '?'}{quote(query, '=')}"
        status, headers, content = ask(address, Cookie=cookie)
        assert (status, headers["Set-Cookie"]) == (403, None), address
        assert b"refused: carries no token of this server" in content
    for posted in ("/api/inspect", "/api/explore"):
        assert ask(posted, "POST", b"mode,throughput\na,1\nb,2\n", Cookie=cookie)[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    assert ask(path, Cookie=cookie, Sec_WebSocket_Key="MTIzNDU2Nzg5MDEyMzQ1Ng==", **upgrade)[0] == 403


def test_a_websocket_is_closed_before_it_is_accepted():
    """Whichever server runs the application: uvicorn's own support of WebSockets is turned off."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": [(b"host", b"127.0.0.1")]}
    asyncio.run(application(Fixed(explored(FRAME)), TOKEN)(scope, None, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_the_address_gives_the_cookie_and_the_token_leaves_it(ask):
    status, headers, content = ask(f"/?token={TOKEN.text}", Cookie="")
    assert (status, headers["Cache-Control"]) == (200, "no-cache")
    given, *attributes = headers["Set-Cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert b"url=./" in content
    assert TOKEN.text.encode() not in content
    assert ask("/", Cookie=f"other=1; {given}")[0] == 200
    assert ask(f"/api/metric?name=throughput&token={TOKEN.text}", Cookie="")[0] == 200  # for programs


def test_a_browser_arrives_by_the_printed_address_and_stays_out_of_another_server(browser):
    """Its window has no cookie yet; a server that was started anew has another token."""
    with closing(browser.new_context()) as context, serving(Fixed(explored(FRAME))) as url:
        context.set_default_timeout(200_000)
        page = context.new_page()
        assert page.goto(url).status == 403
        page.goto(TOKEN.in_address(url))
        page.wait_for_url(url)
        page.locator(".bar").first.wait_for()
        page.reload()
        page.locator(".bar").first.wait_for()
        with serving(Fixed(explored(FRAME)), token=AccessToken.random()) as other:
            assert page.goto(other).status == 403


def test_other_pages_cannot_send_anything(ask):
    body = b"mode,throughput\na,1\nb,2\n"
    assert ask("/api/inspect", "POST", body)[0] == 200
    assert ask("/api/inspect", "POST", body, Origin=f"http://{ask.address}")[0] == 200
    assert ask("/api/inspect", "POST", body, Origin="http://evil.example")[0] == 403
    assert ask("/api/inspect", "POST", body, Origin="null")[0] == 403
    assert ask("/api/inspect", "POST", body, Sec_Fetch_Site="cross-site")[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST", "OPTIONS"])
def test_nothing_can_be_changed(ask, method):
    assert ask("/api/table", method)[0] == 405


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/..%2f..%2fpyproject.toml", "/%2e%2e/cli/app.py", "//etc/passwd", "/page/"],
)
def test_only_the_page_is_served(ask, path):
    status, _, content = ask(path)
    assert status in (400, 404), content[:100]


def test_errors_are_one_line_of_json(ask):
    status, _, content = ask("/api/metric?name=%3Cb%3E")
    assert status == 400
    assert json.loads(content) == {"error": "metric '<b>': does not exist; there are throughput"}
    status, _, content = ask("/api/explore?objective=x&file=own.csv", "POST", b"")
    assert (status, "file 'own.csv'" in json.loads(content)["error"]) == (400, True)


def test_a_file_that_is_too_large_is_refused(ask, monkeypatch):
    monkeypatch.setitem(application.__globals__, "FILE_BYTES_MAX", 10)
    status, _, content = ask("/api/inspect", "POST", b"x" * 11)
    assert (status, "larger than 10 bytes" in json.loads(content)["error"]) == (413, True)


def test_beyond_loopback_addresses_and_own_names_are_answered():
    open_to_all = RequestGuard(application, "0.0.0.0")
    assert open_to_all._is_ours("192.168.1.7:8700")
    assert not open_to_all._is_ours("evil.example")


def test_a_port_that_is_taken_and_an_address_of_others():
    with closing(bound("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Refused, match=f"--port = {port}: "):
            bound("127.0.0.1", port)
    with pytest.raises(InputError, match=r"--host = '192\.0\.2\.1': is not an address of this machine"):
        bound("192.0.2.1", 0)


def test_the_built_page_is_that_of_its_sources():
    """`make page` builds it; what the wheel carries must be what the sources say."""
    web = ROOT / "web"
    files = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts"]
    files += [str(path.relative_to(web)) for path in (web / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file}\0".encode())
        digest.update((web / file).read_bytes())
    built = (PAGE / "sources.sha256").read_text("ascii").strip()
    assert built == digest.hexdigest(), "the page is older than its sources: run `make page`"
    page = (PAGE / "index.html").read_text("utf-8")
    for file in ("explore.js", "index.css"):
        assert f"./{file}" in page
        assert (PAGE / file).is_file()
