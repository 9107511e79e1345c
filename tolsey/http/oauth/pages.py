"""Where people decide what agents may do: the authorization endpoint, and the page of their agents."""

import hashlib
import hmac
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Forbidden, NotFound, Refusal
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import marked
from tolsey.http.oauth import parameters
from tolsey.http.oauth.parameters import OAuthError
from tolsey.http.oauth.redirects import origin_of
from tolsey.http.oauth.scopes import ON_REQUEST, SCOPES, allowed
from tolsey.http.oauth.server import Misdirected
from tolsey.http.oauth.views import (
    CHOSEN,
    CSRF,
    Agent,
    AgentsPage,
    ConsentPage,
    RefusedConsentPage,
)
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, identify, page, public
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import stores
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.oauth import grants, requests
from tolsey.storage.oauth.requests import RequestRow

PATH: Final = "/account/agents"
SHOWN_GRANTS: Final = 200
CONSENT: Final = "/oauth/consent"

routes = Blueprint("consent", __name__)
answer_with_pages(routes)


class Closed(Refusal):
    """The request was decided, waited for too long, or never was."""

    status = 404
    code = "request_closed"

    def __init__(self) -> None:
        super().__init__(
            marked(
                "This authorization request has expired or was already answered. Start again in"
                " your app."
            )
        )


class BadRequest(Refusal):
    """The app sent its user here in a way that cannot be answered."""

    status = 400
    code = "bad_request"


@routes.get("/oauth/authorize")
@public
async def authorize() -> Response:
    """Keep what a client asks for, and let its user decide, who signs in first (RFC 6749, 4.1.1)."""
    await limits.admit(policies.AGENT_REQUESTS)
    try:
        sent = parameters.parse(request.query_string)
        asked = await service().agents.server.ask(sent, now())
    except Misdirected as error:
        raise BadRequest(str(error)) from error
    except OAuthError as error:
        raise BadRequest(error.description) from error
    if asked.refusal is not None and await identify() is not None:
        return sent_on(asked.refusal)
    return sent_on(f"{CONSENT}/{asked.id}")


@routes.get(f"{CONSENT}/<request_id>")
@page
async def ask_consent(request_id: str) -> Response:
    """Show who asks for what, or that this user cannot allow it.

    It never sends on to the client by itself: a browser that comes from the form that signs in would
    not go there (CSP, "form-action").
    """
    wanted = await _open(request_id)
    found = await _store(wanted)
    # One place alone: with a scheme beside it the form could be led anywhere (CSP 3, "form-action").
    targets, csrf = (origin_of(wanted.redirect_uri),), _csrf(request_id)
    if found is None:
        refused = RefusedConsentPage(wanted=wanted, csrf=csrf)
        return shown(refused, HTTPStatus.FORBIDDEN, form_targets=targets)
    store, role = found
    # What is let out on request alone is offered to who asked for it by its name (rules/agents#scopes).
    offered = [one for one in SCOPES if one not in ON_REQUEST or one in wanted.scopes]
    question = ConsentPage(
        wanted=wanted, csrf=csrf, store=store.name, may_allow=allowed(offered, role)
    )
    return shown(question, form_targets=targets)


@routes.post(f"{CONSENT}/<request_id>")
@page
async def decide(request_id: str) -> Response:
    """Send the client what the user decided: the boxes they ticked, and nothing else of the form.

    What was asked is read from where it was kept.

    The browser goes there with a GET, never with what was posted (RFC 9700, 4.12).
    """
    form = await request.form
    _require_csrf(form.get(CSRF, ""), request_id)
    chosen = form.getlist(CHOSEN) if form.get("decision") == "allow" else ()
    address = await service().agents.server.decide(
        request_id, caller().user_id, chosen=chosen, at=now()
    )
    if address is None:
        raise Closed
    return sent_on(address)


@routes.get(PATH)
@page
async def show_agents() -> Response:
    """Show what the caller lets agents do."""
    found = await grants.of_user(service().database, caller().user_id, SHOWN_GRANTS)
    return shown(AgentsPage(agents=[Agent(one, _csrf(one.id)) for one in found]))


@routes.post(f"{PATH}/<grant_id>/end")
@page
async def end(grant_id: str) -> Response:
    """End one of the caller's own grants, with all its tokens."""
    form = await request.form
    _require_csrf(form.get(CSRF, ""), grant_id)
    found = await grants.of_user(service().database, caller().user_id, SHOWN_GRANTS)
    if all(one.id != grant_id for one in found):
        raise NotFound(
            "This agent doesn't exist, or it no longer has access. Reload the list of agents."
        )
    await service().agents.server.end(grant_id, "user", actor=caller().user_id, at=now())
    return sent_on(PATH)


async def _open(request_id: str) -> RequestRow:
    wanted = await requests.find(service().database, request_id, now())
    if wanted is None:
        raise Closed
    return wanted


async def _store(wanted: RequestRow) -> tuple[StoreRow, str] | None:
    return await stores.find_for(service().database, wanted.store_id, caller().user_id)


def _csrf(what: str) -> str:
    """Bind a form to the session and to what it is about; whoever has no cookie cannot make it."""
    token = cookies.session_token() or ""
    return hmac.new(token.encode(), f"agents:{what}".encode(), hashlib.sha256).hexdigest()


def _require_csrf(sent: str, what: str) -> None:
    if not hmac.compare_digest(sent.encode(), _csrf(what).encode()):
        raise Forbidden(
            "The form has expired or is invalid. Open the page again and resubmit it.",
            code="bad_form",
        )
