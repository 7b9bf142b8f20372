"""The documentation as a site, into build/site: the pages of docs/ and those at the top, with search.

    python scripts/site.py              into build/site/site/VERSION, from copies in build/site/docs
    python scripts/site.py PUBLISHED    with the other versions that a published site has
    python scripts/site.py --jobs 4     four pages at a time: what they measure disturbs one another

Pages stay plain Markdown. Links that lead out of docs/ lead to the copies beside it; one that leads nowhere
ends it. What commands print is what they print while the site is built (`scripts/outputs.py`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tomli_w
from bill_of_materials import said
from outputs import OutputError, marked_pages, with_outputs
from third_party import KEPT, Part, document, texts_in

from ascar import __version__

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "build/site"
SITE = SOURCES / "site"
VERSIONS = "versions.json"
TOP = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
SECTIONS = (
    ("Tutorials", "tutorials"),
    ("How-to", "howto"),
    ("Reference", "reference"),
    ("Algorithms", "algorithms"),
)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ANCHOR = re.compile(r"\]\([^)\s]*#[^)\s]+")
_VERSION = re.compile(r"\d[\w.+-]*")
_LINK = re.compile(r"\]\(((?:\.\./)*)([^)#\s]+)")


def main() -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site, into build/site.")
    parser.add_argument("published", nargs="?", type=Path, help="a published site, for its other versions")
    parser.add_argument("--jobs", type=int, default=1, help="pages whose commands run at a time (default 1)")
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: must be 1 or more")
    published = given.published and given.published.resolve()
    if published is not None and (published.is_relative_to(SOURCES) or not (published / VERSIONS).is_file()):
        sys.stderr.write(
            f"{published}: must be a published site, with its {VERSIONS}, outside of {SOURCES}\n"
        )
        return 2
    pages = SOURCES / "docs"
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    shutil.copytree(ROOT / "examples", pages / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in TOP:
        shutil.copy(ROOT / name, pages)
    (pages / "README.md").rename(pages / "index.md")
    for page in pages.rglob("*.md"):
        page.write_text(_linked(page.relative_to(pages), page.read_text("utf-8")), "utf-8")
    with ThreadPoolExecutor(given.jobs) as pool:
        said = list(pool.map(_written, marked_pages(pages)))
    sys.stderr.write("".join(said))
    if any(said):
        return 1
    (SOURCES / "zensical.toml").write_text(tomli_w.dumps({"project": _project(pages)}), "utf-8")
    words = [ROOT / "scripts/tool", "site", "zensical", "build", "--strict"]
    status = subprocess.run(words, cwd=SOURCES, check=False).returncode
    if status == 0:
        (SITE / __version__ / "THIRD-PARTY-LICENSES.txt").write_text(_licences(), "utf-8")
        _offer_versions(published)
    return status


def _licences() -> str:
    """Of the theme, its icons and its scripts, whose list of licences has few of their texts."""
    ask = (
        "import importlib.metadata as m; d = m.distribution('zensical'); print(d.version, d.locate_file(''))"
    )
    version, place = said(str(ROOT / "scripts/tool"), "site", "python", "-c", ask).strip().split(" ", 1)
    folders = (Path(place, f"zensical-{version}.dist-info"), Path(place, "zensical"), KEPT / "zensical")
    texts = [text for folder in folders for text in texts_in(folder)]
    # Some are under the licence that is ours, too.
    texts.append((ROOT / "LICENSE").read_text("utf-8"))
    return document("this site", [Part("Zensical", version, "MIT", tuple(texts))])


def _written(page: Path) -> str:
    """Write into a page what its commands print; what is wrong, or nothing."""
    try:
        page.write_text(with_outputs(page.read_text("utf-8")), "utf-8")
    except OutputError as error:
        return f"{page.relative_to(SOURCES / 'docs')}: {error}\n"
    return ""


def _offer_versions(published: Path | None) -> None:
    """Beside this version: the others of a published site, the list for the selector, and a way here."""
    found = [] if published is None else json.loads((published / VERSIONS).read_text("utf-8"))
    names = {__version__}
    for name in (one["version"] for one in found):
        if (
            name not in names
            and _VERSION.fullmatch(name)
            and published is not None
            and (published / name).is_dir()
        ):
            shutil.copytree(published / name, SITE / name)
            names.add(name)
    newest, *older = sorted(
        names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True
    )
    listed = [{"version": newest, "title": newest, "aliases": ["latest"]}]
    listed += [{"version": name, "title": name, "aliases": []} for name in older]
    (SITE / VERSIONS).write_text(json.dumps(listed), "utf-8")
    (SITE / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>ascar</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}/"><a href="{newest}/">ascar</a>\n',
        "utf-8",
    )


def _linked(page: Path, text: str) -> str:
    """The page with its links as they lead in the site."""
    depth = len(page.parents) - 1
    is_top = page.name in TOP

    def link(found: re.Match[str]) -> str:
        up, target = found[1], found[2]
        # A page at the top names docs/; one in docs/ goes one folder further up than there is one here.
        if is_top:
            target = target.removeprefix("docs/")
        elif up.count("../") > depth:
            up = up.removeprefix("../")
        if target == "README.md":
            target = "index.md"
        return f"]({up}{target}"

    # Headings are named as by GitHub, but for repeated hyphens.
    return _ANCHOR.sub(lambda found: re.sub("--+", "-", found[0]), _LINK.sub(link, text))


def _project(pages: Path) -> dict[str, object]:
    nav: list[dict[str, object]] = [{"ascar": "index.md"}]
    for title, folder in SECTIONS:
        nav.append(
            {
                title: [
                    {_title(page): f"{folder}/{page.name}"} for page in sorted((pages / folder).glob("*.md"))
                ]
            }
        )
    others = [page for page in sorted(pages.glob("*.md")) if page.name not in (*TOP, "index.md")]
    nav.append({"Measured and described": [{_title(page): page.name} for page in others]})
    nav.append({"Project": [{_title(pages / name): name} for name in TOP]})
    return {
        "site_name": f"ascar {__version__}",
        "site_dir": f"{SITE.name}/{__version__}",
        "extra": {"version": {"provider": "mike"}},
        "site_description": "Finds good settings for storage systems.",
        "nav": nav,
        "theme": {
            # No page asks another machine for anything.
            "font": False,
            "features": [
                "content.code.copy",
                "navigation.top",
                "navigation.path",
                "search.highlight",
                "toc.follow",
            ],
            "palette": [
                {"media": f"(prefers-color-scheme: {mode})", "scheme": scheme}
                for mode, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "markdown_extensions": {
            "toc": {"permalink": True},
            "tables": {},
            "fenced_code": {},
            "md_in_html": {},
        },
    }


def _title(page: Path) -> str:
    found = _TITLE.search(page.read_text("utf-8"))
    return found[1].replace("`", "") if found else page.stem


if __name__ == "__main__":
    sys.exit(main())
