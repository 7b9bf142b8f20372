from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.analysis.markup import Html, each, tag, text


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, object]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.seen.append(("data", data))


def read(html: str) -> list[tuple[str, object]]:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.seen


@given(st.text(st.characters() | st.sampled_from("<>&\"'`=\0\udcff")))
def test_no_text_becomes_markup(said):
    html = tag("p", said, title=said)
    seen = read(html)
    assert [name for name, _ in seen if name != "data"] == ["p"]
    html.encode("utf-8")
    assert "\0" not in html


def test_markup_stays_and_text_is_escaped():
    assert tag("p", tag("b", "a < b"), " & ", 3) == "<p><b>a &lt; b</b> &amp; 3</p>"
    assert each("<", Html("<br>")) == "&lt;<br>"


def test_attributes():
    assert tag("meta", http_equiv="x", class_=None) == '<meta http-equiv="x">'
    assert tag("a", "x", class_='"><script>', aria_label="y") == (
        '<a class="&quot;&gt;&lt;script&gt;" aria-label="y">x</a>'
    )
    assert tag("meta", name="viewport") == '<meta name="viewport">'


@pytest.mark.parametrize("value", [None, 1.5, True, ["<"]])
def test_any_value_is_text(value):
    assert "<" not in text(value)
