"""The status page and its documents, for everybody (rules/service#status)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.http.layout.answers import answer_with_pages, filled_again, shown
from tolsey.http.layout.forms import Filled, Misfilled, read, sent
from tolsey.http.layout.templates import Page
from tolsey.http.status.documents import documents, feed
from tolsey.http.status.standing import SHOWN, ServiceStanding, ToldIncident, standing, told
from tolsey.http.status.subscribing import StatusForm, confirm, confirmed_address, invite
from tolsey.http.web import policies
from tolsey.http.web.access import public
from tolsey.http.web.context import now, service
from tolsey.http.web.limits import admit
from tolsey.storage.status import incidents

AGE = "public, max-age=30"

routes = Blueprint("status", __name__)
documents_routes = Blueprint("status_documents", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class StatusPage(Page):
    """How the service does, and a form to be told."""

    template = "status/status.html"
    standing: ServiceStanding
    filled: Filled = field(default_factory=Filled)
    is_asked: bool = False


@dataclass(frozen=True, kw_only=True)
class StatusHistoryPage(Page):
    """What was wrong when."""

    template = "status/history.html"
    incidents: Sequence[ToldIncident]


@dataclass(frozen=True, kw_only=True)
class StatusConfirmPage(Page):
    """Whether an address is to be told."""

    template = "status/confirm.html"
    email: str
    token: str
    is_done: bool


async def _now() -> ServiceStanding:
    return await standing(service().database, now())


@routes.get("/status")
@public
async def show_status() -> Response:
    """Show how the service does."""
    return shown(StatusPage(standing=await _now()))


@routes.get("/status/history")
@public
async def show_history() -> Response:
    """Show what was wrong when."""
    database = service().database
    found = await told(database, await incidents.listed(database, SHOWN, None, public=True))
    return shown(StatusHistoryPage(incidents=found))


@routes.post("/status/subscribe")
@public
async def subscribe_by_form() -> Response:
    """Have an address asked whether it wants to be told."""
    values = await sent()
    try:
        wanted = read(StatusForm, values)
        await admit(policies.STATUS_SUBSCRIPTIONS)
        await invite(wanted.email)
    except (Misfilled, Refusal) as wrong:
        page = StatusPage(standing=await _now(), filled=filled_again(values, wrong))
        return shown(page, refusal=wrong)
    return shown(StatusPage(standing=await _now(), is_asked=True))


@routes.get("/status/confirm/<token>")
@public
async def ask_to_confirm(token: str) -> Response:
    """Ask whether an address is to be told; to look at the link decides nothing."""
    email, _ = confirmed_address(token)
    return shown(StatusConfirmPage(email=email, token=token, is_done=False))


@routes.post("/status/confirm/<token>")
@public
async def confirm_by_form(token: str) -> Response:
    """Tell an address from now on."""
    email, components = confirmed_address(token)
    await confirm(email, components)
    return shown(StatusConfirmPage(email=email, token=token, is_done=True))


@documents_routes.get("/status.json")
@public
async def read_summary() -> Response:
    """Answer with everything at once."""
    return await _document("summary")


@documents_routes.get("/status/api/v2/<path:name>.json")
@public
async def read_document(name: str) -> Response:
    """Answer with one document of the API that status clients know."""
    return await _document(name)


@documents_routes.get("/status/incidents.rss")
@public
async def read_feed() -> Response:
    """Answer with what was said of incidents, for feed readers."""
    database = service().database
    found = await told(database, await incidents.listed(database, SHOWN, None, public=True))
    body = feed(found, service().settings.base_url)
    return _cached(body, "application/rss+xml; charset=utf-8", body)


async def _document(name: str) -> Response:
    found = documents(await _now(), service().settings.base_url).get(name)
    if found is None:
        raise NotFound(
            "This document doesn't exist, or you don't have access to it. Check the link or the id."
        )
    # The moment of the look is no news.
    still = {**found, "page": {**found["page"], "updated_at": None}}
    return _cached(orjson.dumps(found), "application/json", orjson.dumps(still))


def _cached(body: bytes, kind: str, told_by: bytes) -> Response:
    """Answer with what may be kept for a moment, or that nothing changed (RFC 9110, section 13.1.2)."""
    response = Response(body, content_type=kind)
    response.set_etag(hashlib.sha256(told_by).hexdigest()[:32], weak=True)
    response.headers["Cache-Control"] = AGE
    # Pages of anywhere may show how the service does.
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.if_none_match.contains_weak(response.get_etag()[0] or ""):
        response.status_code = 304
        response.set_data(b"")
    return response
