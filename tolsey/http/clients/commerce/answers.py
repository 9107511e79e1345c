"""What the platform's answers mean: the token endpoint's, and those of the Admin GraphQL API."""

import html
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from tolsey.actors.bodies import Body, lenient
from tolsey.actors.ports import (
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    QueryTooCostly,
    TokenGrant,
)
from tolsey.http.clients.commerce.bodies import PlatformReply, TransientFault
from tolsey.http.clients.commerce.costs import MOST_QUERY_POINTS, Cost, read_points
from tolsey.http.clients.decoding import retry_after

LONGEST_MESSAGE = 300
LONGEST_WORDS = 4000
UNKNOWN_LIFE_SECONDS = 3600
SHORTEST_THROTTLE_SECONDS = 0.1
LONGEST_LIFE_SECONDS = 366 * 86_400

TOO_COSTLY = "MAX_COST_EXCEEDED"
OK = 200
TRANSIENT_STATUSES = frozenset({408, 425, 429, 430})
CLIENT_ERROR = 400
SERVER_ERRORS = range(500, 600)

PERMANENT_GRANT_ERRORS = frozenset(
    {
        "app_not_installed",
        "application_cannot_be_found",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "missing_shopify_permission",
        "shop_not_permitted",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
TRANSIENT_GRANT_ERRORS = frozenset({"server_error", "slow_down", "temporarily_unavailable"})
GRANT_STATUS_CODES = {401: "unauthorized", 402: "shop_frozen", 404: "shop_not_found"}

OAUTH_PAGE = re.compile(r"Oauth error ([a-z_]{3,60})(?::\s*(.*))?", re.IGNORECASE)
CODE = re.compile(r"[a-z][a-z0-9_]{1,59}")
TAG = re.compile(r"<[^<>]{0,2000}>")
TOKEN = re.compile(r"[\x21-\x7e]{1,2048}")
SCOPE = re.compile(r"(?:unauthenticated_)?(?:read|write)_[a-z0-9_]{1,60}")


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of a GraphQL answer's `errors`; `path` names the field it belongs to.

    `message` is a plain line, `words` the message as the platform wrote it.
    """

    code: str
    message: str
    path: tuple[str, ...] = ()
    missing_scope: str | None = None
    words: str | None = None

    def denied(self, status: int) -> PlatformDenied:
        """Put it as a refusal."""
        return PlatformDenied(status, self.message, self.missing_scope, self.words)


@dataclass(frozen=True, slots=True)
class GraphqlAnswer:
    """A GraphQL answer: its data, and what failed in it."""

    data: dict[str, Any] = field(repr=False)
    faults: tuple[Fault, ...] = ()


def plain(text: str) -> str:
    """Reduce the platform's words to one line without markup, control or invisible characters."""
    bare = html.unescape(TAG.sub(" ", text[: 20 * LONGEST_MESSAGE]))
    # C holds control, format (direction marks), surrogate and private characters
    shown = "".join(
        " " if unicodedata.category(each)[0] in "CZ" else each for each in bare if each not in "<>"
    )
    line = " ".join(shown.split())
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"


def verbatim(said: object) -> str:
    """Keep the platform's words as they are, however it puts them; JSON for what is no text.

    Only NUL is replaced, which PostgreSQL keeps nowhere, and what is endless is cut.
    """
    text = said if isinstance(said, str) else to_json(said).decode()
    whole = text.replace("\0", "\ufffd")
    return whole if len(whole) <= LONGEST_WORDS else whole[: LONGEST_WORDS - 1] + "…"


def scopes_of(text: str) -> tuple[str, ...]:
    """Split a comma separated grant, each scope once; empty means that it is unknown."""
    return tuple(dict.fromkeys(scope for each in text.split(",") if (scope := each.strip())))


def missing_scope(*texts: object) -> str | None:
    """Find the permission the platform names in its refusal."""
    for text in texts:
        found = SCOPE.search(text[: 20 * LONGEST_MESSAGE]) if isinstance(text, str) else None
        if found is not None:
            return found[0]
    return None


def read_grant(reply: PlatformReply) -> TokenGrant:
    """Read the token endpoint's answer, or raise why there is no token.

    The body's `error` is believed first, then the status; a refusal comes as JSON or as a page.
    """
    body = read_body(reply)
    if reply.status == OK and "error" not in body:
        return _grant(body)
    code, message = _grant_error(reply, body)
    if code in PERMANENT_GRANT_ERRORS:
        raise GrantRefused(code, message)
    if code in TRANSIENT_GRANT_ERRORS or reply.status in TRANSIENT_STATUSES:
        raise TransientFault(message, wait_seconds=retry_after(reply.headers))
    if reply.status in SERVER_ERRORS:
        raise TransientFault(message, wait_seconds=retry_after(reply.headers))
    if reply.status < CLIENT_ERROR:
        raise PlatformUnreachable(
            f"Shopify returned the redirect {reply.status}, which isn't followed. Check the shop's domain."
        )
    by_status = GRANT_STATUS_CODES.get(reply.status, f"refused_{reply.status}")
    raise GrantRefused(code or by_status, message)


def _grant(body: Mapping[str, Any]) -> TokenGrant:
    token, scope, life = (body.get(name) for name in ("access_token", "scope", "expires_in"))
    if not isinstance(token, str) or TOKEN.fullmatch(token) is None:
        raise TransientFault("Shopify's response contains no access token. Try again in a minute.")
    if isinstance(life, bool) or not isinstance(life, int | float) or life < 1:
        life = UNKNOWN_LIFE_SECONDS
    return TokenGrant(
        token,
        scopes_of(scope) if isinstance(scope, str) else (),
        int(min(life, LONGEST_LIFE_SECONDS)),
    )


def _grant_error(reply: PlatformReply, body: Mapping[str, Any]) -> tuple[str | None, str]:
    code = body.get("error")
    if isinstance(code, str) and CODE.fullmatch(code):
        return code, plain(str(body.get("error_description") or code))
    page = plain(reply.body.decode("utf-8", "replace"))
    found = OAUTH_PAGE.search(page)
    if found is not None:
        return found[1].lower(), found[2] or found[1]
    said = body.get("errors") or body.get("error_description") or body.get("error")
    if isinstance(said, str):
        return None, plain(said)
    return None, f"Shopify returned status {reply.status} for the token request."


def read_shop(reply: PlatformReply) -> dict[str, Any]:
    """Read a shop's description (REST `shop.json`); what stands in for one is raised by its meaning."""
    if reply.status != OK:
        raise _status_fault(reply)
    shop = read_body(reply).get("shop")
    if not isinstance(shop, dict):
        raise TransientFault("Shopify's response doesn't describe a shop. Check the shop's domain.")
    return shop


def read_answer(reply: PlatformReply, body: Body, cost: Cost | None) -> GraphqlAnswer:
    """Read a GraphQL answer from its parsed body; what stands in for one is raised by its meaning."""
    if reply.status != OK:
        raise _status_fault(reply)
    faults = tuple(_faults(body.get("errors")))
    data = body.get("data")
    codes = {fault.code for fault in faults}
    if "THROTTLED" in codes:
        raise _throttled(cost, done=isinstance(data, dict))
    if TOO_COSTLY in codes:
        raise _too_costly(body["errors"])
    if "INTERNAL_SERVER_ERROR" in codes:
        raise TransientFault("Shopify reported an internal error. Try again in a minute.")
    if not isinstance(data, dict):
        if faults:
            raise refusal(faults)
        raise TransientFault(
            "Shopify's response is not a valid GraphQL response. Try again in a minute."
        )
    return GraphqlAnswer(data, faults)


def refusal(faults: tuple[Fault, ...]) -> PlatformDenied:
    """Put a GraphQL answer's faults as one refusal, the missing permission first."""
    for fault in faults:
        if fault.code == "ACCESS_DENIED":
            return fault.denied(403)
    return faults[0].denied(400)


def _throttled(cost: Cost | None, *, done: bool) -> Exception:
    if cost is not None and cost.requested > cost.maximum:
        return QueryTooCostly(cost.requested, cost.maximum)
    # never 0: a platform that throttles without a reason in numbers must not be asked in a loop
    wait = max(cost.wait_seconds, SHORTEST_THROTTLE_SECONDS) if cost else None
    return TransientFault(
        "Shopify is limiting requests for this shop. Try again in a moment.",
        wait_seconds=wait,
        done=done,
        throttled=True,
    )


def _too_costly(errors: object) -> QueryTooCostly:
    """Read the figures of the error that refuses a query for its cost."""
    for error in errors if isinstance(errors, list) else ():
        extensions = lenient(lenient(error).get("extensions"))
        if extensions.get("code") == TOO_COSTLY:
            limit = read_points(extensions.get("maxCost"))
            return QueryTooCostly(read_points(extensions.get("cost")), limit or MOST_QUERY_POINTS)
    return QueryTooCostly(None, MOST_QUERY_POINTS)


def _status_fault(reply: PlatformReply) -> Exception:
    said = read_body(reply).get("errors")
    message = plain(said) if isinstance(said, str) else f"Shopify returned status {reply.status}."
    if reply.status in TRANSIENT_STATUSES:
        wait = retry_after(reply.headers)
        return TransientFault(message, wait_seconds=wait, done=False, throttled=True)
    if reply.status in SERVER_ERRORS:
        return TransientFault(message, wait_seconds=retry_after(reply.headers))
    if reply.status < CLIENT_ERROR:
        return PlatformUnreachable(
            f"Shopify returned the redirect {reply.status}, which isn't followed. Check the shop's domain."
        )
    words = verbatim(said or reply.body.decode("utf-8", "replace")) or message
    return PlatformDenied(reply.status, message, missing_scope(words), words)


def _faults(errors: object) -> list[Fault]:
    if isinstance(errors, str):
        return [
            Fault("", plain(errors), missing_scope=missing_scope(errors), words=verbatim(errors))
        ]
    return [_fault(each) for each in errors[:100]] if isinstance(errors, list) else []


def _fault(error: object) -> Fault:
    if not isinstance(error, dict):
        return Fault("", "Shopify reported an error. Try again in a minute.")
    extensions = lenient(error.get("extensions"))
    words = str(error.get("message") or "Shopify reported an error. Try again in a minute.")
    message = plain(words)
    code = str(extensions.get("code") or ("THROTTLED" if message == "Throttled" else ""))
    path = error.get("path")
    return Fault(
        code,
        message,
        tuple(str(step) for step in path) if isinstance(path, list) else (),
        missing_scope(extensions.get("requiredAccess"), error.get("message")),
        verbatim(words),
    )


def read_body(reply: PlatformReply) -> Body:
    """Parse a reply's JSON object; what is not one has no fields."""
    try:
        return lenient(reply.json())
    except ValueError:
        return {}
