"""Who may call: every route carries one of these decorators, or the app does not start."""

import hmac
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Final, Literal, cast

import structlog
from quart import Quart, g, request
from quart_schema import validate_querystring, validate_request
from quart_schema.validation import QUART_SCHEMA_REQUEST_ATTRIBUTE

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.refusals import Forbidden, MissingCredential, NotFound, Refusal, Unauthorized
from tolsey.http.web.callers import addresses, cookies, queue_proof
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import stores
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.people import accounts, administrators, api_keys, tokens
from tolsey.storage.people.accounts import OrganizationRow
from tolsey.storage.people.api_keys import KeyHolder
from tolsey.storage.selling import listings
from tolsey.storage.selling.listings import ListingView

View = Callable[..., Awaitable[Any]]
Route = Callable[..., Coroutine[Any, Any, Any]]
"""A view that says who may call; what it returns, its own annotation says, which `/openapi.json` reads."""
Role = Literal["member", "admin", "owner"]

RANKS: dict[str, int] = {"member": 1, "admin": 2, "owner": 3}
ATTRIBUTE = "tolsey_access"

BOT: Final = re.compile(r"(?<!cu)bot\b|crawl|spider|slurp", re.IGNORECASE)
"""How what reads the web by itself calls itself in `User-Agent` (RFC 9110, section 10.1.5); Cubot is a telephone."""

log = structlog.get_logger()


class Access(StrEnum):
    """Who a route is for."""

    PUBLIC = "public"
    SESSION = "session"
    PAGE = "page"
    ADMINISTRATOR = "administrator"
    CRON = "cron"
    METRICS = "metrics"
    API_KEY = "api key"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is signed in."""

    user_id: str
    email: str


def caller() -> Caller:
    """Return who is signed in; only inside a view for sessions or administrators."""
    return cast("Caller", g.caller)


def public(view: View) -> Route:
    """Let anyone call."""
    checked = _checked(view)
    checked.__dict__[ATTRIBUTE] = Access.PUBLIC
    return checked


def session(view: View) -> Route:
    """Let anyone call who is signed in; others get 401."""
    return _guarded(view, Access.SESSION, _prove_session)


def page(view: View) -> Route:
    """Let anyone see who is signed in; others are led to the page that signs in, and back."""
    return _guarded(view, Access.PAGE, _prove_session)


def administrator(view: View) -> Route:
    """Let call who is at least admin in the administrators' organization."""
    return _guarded(view, Access.ADMINISTRATOR, _prove_administrator)


def cron(view: View) -> Route:
    """Let call who knows `CRON_SECRET`."""
    return _guarded(view, Access.CRON, _prove_cron)


def operator_metrics(view: View) -> Route:
    """Let call who knows `METRICS_TOKEN`; without one, this machine, unless it serves the public."""
    return _guarded(view, Access.METRICS, _prove_metrics)


def internal(view: View) -> Route:
    """Let our queue call, which proves itself; for all others there is nothing at the address."""
    return _guarded(view, Access.INTERNAL, _prove_queue)


def api_key(scope: str) -> Callable[[View], Route]:
    """Let call who sends a live API key that has a scope; no cookie counts."""

    async def prove() -> None:
        g.key_holder = await _prove_api_key(scope)

    return lambda view: _guarded(view, Access.API_KEY, prove)


def key_holder() -> KeyHolder:
    """Return for whom the request's key speaks; only inside a view for keys."""
    return cast("KeyHolder", g.key_holder)


def _checked(view: View) -> Route:
    """Hand a view the body that it takes as `data` and what its address is asked with as `query_args`.

    Both are models, which its annotations name; what does not fit is refused before the view. A view
    that says itself when its body is read, such as after it was counted, is left to do so.
    """
    takes, checked = view.__annotations__, view
    if "data" in takes and not hasattr(view, QUART_SCHEMA_REQUEST_ATTRIBUTE):
        checked = validate_request(takes["data"])(view)
    if "query_args" in takes:
        checked = validate_querystring(takes["query_args"])(checked)
    return cast("Route", checked)


def _guarded(view: View, access: Access, prove: Callable[[], Awaitable[None]]) -> Route:
    checked = _checked(view)

    @wraps(checked)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        await prove()
        # A page does what a route does with what its form held, in place of a body.
        asked = view if kwargs.keys() & {"data", "query_args"} else checked
        return await asked(*args, **kwargs)

    guarded.__dict__[ATTRIBUTE] = access
    return guarded


async def identify() -> Caller | None:
    """Look up who is signed in by the session cookie, once per request; None when no one is.

    From then on limits count what is asked as theirs.
    """
    if "caller" not in g:
        g.caller = await reader()
    return cast("Caller | None", g.caller)


async def reader() -> Caller | None:
    """Look up for whom a page is written, once per request.

    Limits do not know it: who makes an account counts by address, whoever else they are (rules/limits#windows).
    """
    if "reader" not in g:
        token = cookies.session_token()
        found = token and await tokens.find(service().database, token, now())
        g.reader = Caller(found.user_id, found.email) if found else None
    return cast("Caller | None", g.reader)


async def _prove_session() -> None:
    if await identify() is not None:
        return
    # A bot that is not signed in has no way to be, and is not led to where people do (rules/requests#bots).
    if BOT.search(request.headers.get("User-Agent", "")):
        raise Forbidden(
            "Bots can't sign in here. Use an API key or connect an agent instead.",
            code="bot_refused",
        )
    raise Unauthorized("You aren't signed in, or your session has expired. Sign in and try again.")


async def _prove_administrator() -> None:
    await _prove_session()
    await require_administrator()


async def require_administrator() -> None:
    """Go on only for who is at least admin in the administrators' organization; others get 403."""
    if not await is_administrator():
        raise Forbidden(
            "Only an administrator of this service can do this. Sign in with an administrator"
            " account."
        )


async def is_administrator() -> bool:
    """Tell whether the caller is at least admin in the administrators' organization."""
    running = service()
    organization_id = await administrators.organization_id(
        running.database, running.settings.admin_organization_id
    )
    role = organization_id and await accounts.role_in(
        running.database, caller().user_id, organization_id
    )
    return bool(role) and RANKS[str(role)] >= RANKS["admin"]


def bearer() -> bytes:
    """Return the bearer token of the request as bytes; empty when there is none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip().encode() if scheme.lower() == "bearer" else b""


class ApiKeyRefused(Unauthorized):
    """No key, a made up one, and one that has ended or expired are one answer."""

    challenge = 'Bearer realm="tolsey"'

    def __init__(self) -> None:
        super().__init__(
            "The API key is missing, invalid or expired. Send an active key in `Authorization:"
            " Bearer` or in `X-Api-Key`."
        )


async def _prove_api_key(scope: str) -> KeyHolder:
    borne, named = bearer().decode("ascii", "replace"), request.headers.get("X-Api-Key", "").strip()
    # RFC 6750, section 2: one way of sending it at a time, so that nobody doubts which one counts.
    if borne and named:
        raise Refusal(
            "The request contains two API keys. Send the key in `Authorization` or in"
            " `X-Api-Key`, not in both."
        )
    holder = await api_keys.admitted(service().database, borne or named, now())
    if holder is None:
        raise ApiKeyRefused
    if scope not in holder.scopes:
        raise Forbidden(
            f"This API key lacks the scope {scope}. Create a key that has it.",
            code="missing_scope",
            scope=scope,
        )
    return holder


async def _prove_cron() -> None:
    secret = service().settings.cron_secret
    if secret is None:
        name = (request.view_args or {}).get("name")
        job = name if name in JOBS else "unknown"  # a stranger's word is no event's name
        # The event is named after the job (rules/service#scheduled-jobs).
        log.warning(f"cron.{job}.missing_secret")  # noqa: G004
        raise MissingCredential("CRON_SECRET")
    if not hmac.compare_digest(bearer(), secret.encode()):
        raise Unauthorized(
            "The cron secret is missing or incorrect. Send CRON_SECRET as the bearer token."
        )


async def _prove_queue() -> None:
    key = service().settings.queue_signing_key
    token = request.headers.get(queue_proof.HEADER, "")
    body = cast("bytes", await request.get_data())
    claims = queue_proof.proven(token, body, key, now()) if key else None
    # It is the same in every environment: who has no proof learns nothing of the route.
    if claims is None:
        raise NotFound("This page or endpoint doesn't exist. Check the address.")
    g.queue_claims = claims


async def _prove_metrics() -> None:
    settings = service().settings
    # Once METRICS_TOKEN is set it is the only key (rules/service#settings).
    if settings.metrics_token is not None:
        if not hmac.compare_digest(bearer(), settings.metrics_token.encode()):
            raise Unauthorized(
                "The metrics token is missing or incorrect. Send METRICS_TOKEN as the bearer token."
            )
    # In public, whoever comes from this machine may be a proxy that says nothing of its visitor.
    elif not settings.is_local:
        raise MissingCredential("METRICS_TOKEN")
    elif not addresses.is_local(request.scope, settings.believed_proxies):
        raise Unauthorized(
            "Metrics are available from this machine only unless METRICS_TOKEN is set. Set it"
            " and send it as the bearer token."
        )


def require_own_machine() -> None:
    """Let nothing be at this address but for who sits at this machine, while it serves no one else."""
    settings = service().settings
    # In public, whoever comes from this machine may be a proxy that says nothing of its visitor.
    if not (settings.is_local and addresses.is_local(request.scope, settings.believed_proxies)):
        raise NotFound("This page or endpoint doesn't exist. Check the address.")


async def member_of(organization_id: str, at_least: Role = "member") -> str:
    """Return the caller's role; 404 for no member (or no such organization), 403 below the role."""
    role = await accounts.role_in(service().database, caller().user_id, organization_id)
    if role is None:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    _require(role, at_least)
    return role


async def organization_of(organization_id: str) -> OrganizationRow:
    """Return an organization that the caller belongs to, with their role; 404 as in `member_of`."""
    found = await accounts.find_organization(service().database, organization_id, caller().user_id)
    if found is None:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    return found


async def first_organization() -> str:
    """Name the first of the caller's organizations, for a page that names none; 404 without any."""
    found = await accounts.organizations_of(service().database, caller().user_id, "", 1)
    if not found:
        raise NotFound("You don't belong to an organization. Ask an owner to invite you.")
    return found[0].id


async def store_of(store_id: str, at_least: Role = "member") -> StoreRow:
    """Return a store of an organization the caller belongs to; 404 and 403 as in `member_of`."""
    found = await stores.find_for(service().database, store_id, caller().user_id)
    if found is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    store, role = found
    _require(role, at_least)
    return store


async def listing_of(listing_id: str, at_least: Role = "member") -> ListingView:
    """Return a listing of an organization the caller belongs to; 404 and 403 as in `member_of`."""
    database = service().database
    view = await listings.find(database, listing_id)
    if view is None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    role = await accounts.role_in(database, caller().user_id, view.listing.organization_id)
    if role is None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    _require(role, at_least)
    return view


def _require(role: str, at_least: Role) -> None:
    if RANKS[role] < RANKS[at_least]:
        raise Forbidden(
            f"Your role doesn't allow this. Ask a member with the role {at_least} or higher to do it.",
            required=at_least,
        )


def access_of(view: Callable[..., Any]) -> Access | None:
    """Tell who a view is for; None when it does not say."""
    return getattr(view, ATTRIBUTE, None)


def require_classes(app: Quart) -> None:
    """Refuse an app with a route that does not say who may call it."""
    silent = [name for name, view in app.view_functions.items() if access_of(view) is None]
    if silent:
        raise TypeError(f"no access decorator on: {', '.join(sorted(silent))}")
