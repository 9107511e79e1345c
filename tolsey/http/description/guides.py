"""The documentation as pages, `/docs` and `/docs/<slug>`: what a clone holds under `docs/`."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

import anyio.to_thread
from markupsafe import Markup
from quart import Blueprint, Response

from tolsey.actors.refusals import NotFound
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import identify, public

if TYPE_CHECKING:
    from markdown_it.token import Token

SLUGS: Final = {"api": "api-guide"}
"""`/docs/api` is the page that draws the description."""
PARTS: Final = ("operate", "rules")
"""Folders of further documents."""
ORDER: Final = ("start", "revenue", "money", "agents", "api-guide", "codes")
"""What comes first in the list; the rest follows by its name."""

routes = Blueprint("guides", __name__, url_prefix="/docs")
answer_with_pages(routes)


@dataclass(frozen=True, slots=True)
class Guide:
    """A document: its title, and its text as HTML that we wrote."""

    title: str
    text: Markup


@dataclass(frozen=True, kw_only=True)
class GuidePage(Page):
    """One document beside the list of all; the list alone without one."""

    titles: Mapping[str, str]
    slug: str | None = None
    guide: Guide | None = None
    template = "guides.html"


@routes.get("")
@public
async def index() -> Response:
    """List the documents."""
    await identify()
    return shown(GuidePage(titles=titles()))


@routes.get("/<path:slug>")
@public
async def read(slug: str) -> Response:
    """Show a document."""
    await identify()
    if slug not in sources():
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        )
    # A long one takes a tenth of a second to write, for which nobody else waits.
    guide = await anyio.to_thread.run_sync(guide_of, slug)
    return shown(GuidePage(titles=titles(), slug=slug, guide=guide))


@cache
def titles() -> Mapping[str, str]:
    """Name the documents by their slugs, those for newcomers first."""
    found = sources()
    rest = sorted(found.keys() - set(ORDER))
    return {slug: _title(*found[slug]) for slug in (*ORDER, *rest) if slug in found}


@cache
def guide_of(slug: str) -> Guide:
    """Write one of the documents, once, when somebody asks for it first."""
    return _guide(*sources()[slug])


@cache
def sources() -> Mapping[str, tuple[str, str]]:
    """Read the file's name and the text of each document, by its slug."""
    folder = resources.files("tolsey") / "docs"
    return {
        _slug_of(posixpath.join(part, one.name)): (
            posixpath.join(part, one.name),
            one.read_text("utf-8"),
        )
        for part in ("", *PARTS)
        for one in folder.joinpath(part).iterdir()
        if one.name.endswith(".md")
    }


def _title(name: str, source: str) -> str:
    heading = source.partition("\n")[0]
    return heading.removeprefix("# ").strip() if heading.startswith("# ") else name


def _slug_of(name: str) -> str:
    slug = name.removesuffix(".md")
    return SLUGS.get(slug, slug)


def _guide(name: str, source: str) -> Guide:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - slow to import, and only readers of the pages need it

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(source)
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor_of(tokens[at + 1].content))
        for part in token.children or ():
            if part.type == "link_open":
                _lead(part, posixpath.dirname(name))
    # Written by us and kept with the code; what it says as HTML is shown as text.
    return Guide(_title(name, source), Markup(reader.renderer.render(tokens, reader.options, {})))  # noqa: S704 - as just said


def anchor_of(heading: str) -> str:
    """Name a heading as code hosts do, so that a link works here and there."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _lead(link: "Token", folder: str) -> None:
    """Let a link between documents lead to the page of the other."""
    path, mark, anchor = str(link.attrGet("href")).partition("#")
    if path.endswith(".md") and "://" not in path:
        slug = _slug_of(posixpath.normpath(posixpath.join(folder, path)))
        link.attrSet("href", f"/docs/{slug}{mark}{anchor}")
