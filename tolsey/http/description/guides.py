"""The documentation as pages, `/docs` and `/docs/<slug>`: what a clone holds under `docs/`."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from quart import Blueprint, Response

from tolsey.actors.refusals import NotFound
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import identify, public

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
    guide = guides().get(slug)
    if guide is None:
        raise NotFound("There is no such document.")
    return shown(GuidePage(titles=titles(), slug=slug, guide=guide))


@cache
def titles() -> Mapping[str, str]:
    """Name the documents by their slugs, those for newcomers first."""
    found = guides()
    rest = sorted(found.keys() - set(ORDER))
    return {slug: found[slug].title for slug in (*ORDER, *rest) if slug in found}


@cache
def guides() -> Mapping[str, Guide]:
    """Read all documents, once, when somebody asks for the first."""
    return {_slug_of(name): _guide(name, file.read_text("utf-8")) for name, file in _files()}


def _files() -> Iterator[tuple[str, Traversable]]:
    folder = resources.files("tolsey") / "docs"
    for part in ("", *PARTS):
        for one in folder.joinpath(part).iterdir():
            if one.name.endswith(".md"):
                yield posixpath.join(part, one.name), one


def _slug_of(name: str) -> str:
    slug = name.removesuffix(".md")
    return SLUGS.get(slug, slug)


def _guide(name: str, source: str) -> Guide:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(source)
    title = tokens[1].content if tokens and tokens[0].tag == "h1" else name
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor_of(tokens[at + 1].content))
        for part in token.children or ():
            if part.type == "link_open":
                _lead(part, posixpath.dirname(name))
    # Written by us and kept with the code; what it says as HTML is shown as text.
    return Guide(title, Markup(reader.renderer.render(tokens, reader.options, {})))  # noqa: S704 - as just said


def anchor_of(heading: str) -> str:
    """Name a heading as code hosts do, so that a link works here and there."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _lead(link: Token, folder: str) -> None:
    """Let a link between documents lead to the page of the other."""
    path, mark, anchor = str(link.attrGet("href")).partition("#")
    if path.endswith(".md") and "://" not in path:
        slug = _slug_of(posixpath.normpath(posixpath.join(folder, path)))
        link.attrSet("href", f"/docs/{slug}{mark}{anchor}")
