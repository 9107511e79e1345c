"""The interface as pages, `/docs/api`: what `/openapi.json` says, to be read without a script."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson
from markupsafe import Markup
from quart import Blueprint, Response, current_app, request

from tolsey.actors.refusals import NotFound
from tolsey.http.description import documentation
from tolsey.http.description.shapes import FieldLine, Shape, Shapes, Word
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import identify, public

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST: Final = 50
"""Routes that a search shows; who finds more asks for less."""
OTHERS: Final = "Other"
CALLERS: Final[Mapping[str, str]] = {
    "session": marked("Whoever is signed in: the session's cookie"),
    "cronSecret": marked("Your scheduler: CRON_SECRET as a bearer token"),
    "metricsToken": marked("Your monitoring: METRICS_TOKEN as a bearer token"),
    "agent": marked("Agents: an access token as a bearer token"),
    "apiKey": marked("Programs: an API key as a bearer token"),
    "queueSignature": marked("Your queue: its signature"),
}
"""Who may call, by the names of the document's security schemes."""

routes = Blueprint("reference", __name__, url_prefix="/docs/api")
answer_with_pages(routes)


@dataclass(frozen=True, slots=True)
class RouteShown:
    """A route under one method: what it does, and all that is said of it."""

    id: str
    group: str
    method: str
    path: str
    said: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Where it is described."""
        return f"/docs/api/{slug_of(self.group)}/{self.id}"

    @property
    def summary(self) -> Markup:
        """What it does, in a sentence."""
        return prose(self.said.get("summary", ""))

    @property
    def words(self) -> str:
        """What a search looks in."""
        return f"{self.method} {self.path} {self.id} {self.said.get('summary', '')}".casefold()


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """Routes of one subject."""

    name: str
    operations: Sequence[RouteShown]

    @property
    def address(self) -> str:
        """Where they are listed."""
        return f"/docs/api/{slug_of(self.name)}"


@dataclass(frozen=True, slots=True)
class Reference:
    """The whole document, ordered for its readers."""

    groups: Mapping[str, RouteGroup]
    """By what their addresses call them."""
    shapes: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """What a status comes with."""

    status: str
    about: str
    kinds: Sequence[tuple[str, Sequence[Word]]]
    """Types of content, with what is in them."""


@dataclass(frozen=True, kw_only=True)
class ReferencePage(Page):
    """All groups; the routes of one of them; or what a search found."""

    template = "reference/routes.html"
    groups: Sequence[RouteGroup]
    group: RouteGroup | None = None
    asked: str = ""
    found: Sequence[RouteShown] = ()

    @property
    def total(self) -> int:
        """How many routes there are."""
        return sum(len(one.operations) for one in self.groups)

    @property
    def listed(self) -> Sequence[RouteShown]:
        """The routes that are on the page."""
        return self.group.operations if self.group else self.found[:MOST]


@dataclass(frozen=True, kw_only=True)
class OperationPage(Page):
    """One route under one method."""

    template = "reference/route.html"
    operation: RouteShown
    group: RouteGroup
    about: Markup
    callers: Sequence[str]
    parameters: Sequence[FieldLine]
    bodies: Sequence[tuple[str, Sequence[Word]]]
    answers: Sequence[AnswerLine]
    refusals: Sequence[str]
    """Statuses of refusals, which all routes say alike; their codes are a page of their own."""
    shapes: Sequence[Shape]


@routes.get("")
@public
async def index() -> Response:
    """List the groups, or the routes that a search finds."""
    await identify()
    known = await _reference()
    asked = request.args.get("q", "").strip()
    wanted = asked.casefold().split()
    found = [
        one
        for group in known.groups.values()
        for one in group.operations
        if wanted and all(word in one.words for word in wanted)
    ]
    return shown(ReferencePage(groups=list(known.groups.values()), asked=asked, found=found))


@routes.get("/<group>")
@public
async def show_group(group: str) -> Response:
    """List the routes of a group."""
    await identify()
    known = await _reference()
    return shown(ReferencePage(groups=list(known.groups.values()), group=_found(known, group)))


@routes.get("/<group>/<operation>")
@public
async def show_operation(group: str, operation: str) -> Response:
    """Describe a route: who may call it, what it takes, what it answers."""
    await identify()
    known = await _reference()
    within = _found(known, group)
    wanted = next((one for one in within.operations if one.id == operation), None)
    if wanted is None:
        raise NotFound("The API has no such endpoint. Check the list of endpoints.")
    return shown(described(known, within, wanted))


def described(known: Reference, group: RouteGroup, wanted: RouteShown) -> OperationPage:
    """Read what is said of a route."""
    said, shapes = wanted.said, Shapes(known.shapes)
    parameters = [
        shapes.line(
            one["name"],
            one["schema"],
            required=one["required"],
            about=one.get("description", ""),
            place=one["in"],
        )
        for one in said.get("parameters", ())
    ]
    bodies = _contents(said.get("requestBody", {}), shapes, marked("Body"))
    answers, refusals = list[AnswerLine](), list[str]()
    for status, one in sorted(said["responses"].items()):
        if "$ref" not in one:
            contents = _contents(one, shapes, marked("Answer"))
            answers.append(AnswerLine(status, one.get("description", ""), contents))
        elif status != "default":
            refusals.append(f"{status} {HTTPStatus(int(status)).phrase}")
    return OperationPage(
        operation=wanted,
        group=group,
        about=prose(said.get("description", "").strip()),
        callers=[_(CALLERS[name]) for one in said["security"] for name in one],
        parameters=parameters,
        bodies=bodies,
        answers=answers,
        refusals=refusals,
        shapes=list(shapes.met()),
    )


def slug_of(group: str) -> str:
    """Name a group in an address."""
    return re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - slow to import, and only readers of the pages need it

    return MarkdownIt("commonmark", {"html": False})


def prose(text: str) -> Markup:
    """Write a sentence of ours that holds code between backticks."""
    # Written by us and kept with the code; what it says as HTML is shown as text.
    return Markup(_markdown().renderInline(text))  # noqa: S704 - as just said


def _contents(
    said: Mapping[str, Any], shapes: Shapes, name: str
) -> Sequence[tuple[str, Sequence[Word]]]:
    return [
        (kind, list(shapes.type_of(one["schema"], _(name))))
        for kind, one in said.get("content", {}).items()
    ]


def _found(known: Reference, slug: str) -> RouteGroup:
    if slug not in known.groups:
        raise NotFound("The API reference has no such section. Check the list of sections.")
    return known.groups[slug]


async def _reference() -> Reference:
    return read(await documentation.provider(current_app).text())


@lru_cache(maxsize=1)
def read(text: bytes) -> Reference:
    """Read the document, once."""
    document = orjson.loads(text)
    groups = dict[str, list[RouteShown]]()
    for one in _operations(document["paths"]):
        groups.setdefault(one.group, []).append(one)
    named = sorted(groups, key=lambda name: (name == OTHERS, name))
    return Reference(
        {slug_of(name): RouteGroup(name, groups[name]) for name in named},
        document["components"]["schemas"],
    )


def _operations(paths: Mapping[str, Any]) -> Iterator[RouteShown]:
    for path, operations in paths.items():
        for method, said in operations.items():
            group = next(iter(said.get("tags", ())), OTHERS)
            yield RouteShown(said["operationId"], group, method.upper(), path, said)
