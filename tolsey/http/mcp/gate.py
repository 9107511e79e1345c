"""The gate of the stores' endpoints: whose token it is, for which address, how often, and how far.

RFC 6750 and 9728 for the challenges; rules/agents#authorization; rules/limits#windows.
"""

from dataclasses import dataclass
from typing import Any, Final

from tolsey.actors.organization import plans
from tolsey.http.mcp.endpoint import Denied
from tolsey.http.mcp.wire import RpcError
from tolsey.http.oauth.access_tokens import AccessTokens
from tolsey.http.oauth.resources import StoreResource
from tolsey.http.oauth.scopes import DEFAULT, allowed, implied, in_order, written
from tolsey.http.web import policies
from tolsey.http.web.callers import addresses
from tolsey.http.web.edge import Headers, Scope
from tolsey.http.web.limits import headers as standing_headers
from tolsey.setting_types import Network
from tolsey.storage.limits import Limits, Verdict, whole_seconds
from tolsey.storage.oauth.grants import Admitted
from tolsey.storage.records.commerce.shops import ShopKey

CALLED: Final = "tolsey.mcp_resource"
"""Where the door leaves in the scope which address was called."""
FORBIDDEN: Final = 403
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, for which store, and what they may: scopes with all that these bring along.

    What the shop has that the store is connected to is read under `shop_key`.
    """

    user_id: str
    organization_id: str
    store_id: str
    shop_key: ShopKey
    role: str
    plan: str
    client_id: str
    grant_id: str
    scopes: frozenset[str]
    resource: StoreResource


class StoreGate:
    """Admits whoever has a token for the very address that is called."""

    def __init__(
        self,
        access_tokens: AccessTokens,
        limits: Limits,
        trusted_proxies: tuple[Network, ...] = (),
    ) -> None:
        self._access_tokens = access_tokens
        self._limits = limits
        self._trusted_proxies = trusted_proxies

    async def admit(self, scope: Scope) -> Principal:
        """Answer who asks. An unknown store is refused like a known one, so none can be guessed."""
        resource: StoreResource = scope[CALLED]
        token = _bearer(scope)
        found = await self._access_tokens.find(token) if token else None
        if found is None or found.resource != resource.resource:
            await self._count_stranger(scope)
            raise _unauthorized(resource, error="invalid_token" if token else None)
        return _principal(found, resource)

    async def count(self, principal: Principal, requests: int) -> Headers:
        """Count requests against the organization's plan: all of them, or none when one is too many."""
        wanted = policies.mcp(plans.BY_CODE[principal.plan])
        whose = f"organization:{principal.organization_id}"
        verdict = await self._limits.admit(wanted, whose, requests)
        if not verdict.allowed:
            raise too_many(verdict)
        return _encoded(standing_headers([verdict]))

    async def _count_stranger(self, scope: Scope) -> None:
        """Count who comes without a token that opens, so that none is found by trying."""
        whose = f"address:{addresses.identity(scope, self._trusted_proxies)}"
        verdict = await self._limits.admit((policies.MCP_FLOOD,), whose)
        if not verdict.allowed:
            error = too_many(verdict)
            seconds = whole_seconds(verdict.retry_after)
            raise Denied(
                TOO_MANY, "too_many_requests", error.message, error.headers, retryAfter=seconds
            )


def require(principal: Principal, scopes: frozenset[str]) -> None:
    """Refuse who lacks a scope, naming what is held and what this needs besides.

    A client asks its user for what the challenge names, and for nothing else: were only the missing
    scope named, the next token would open less than this one (rules/agents#scopes).
    """
    if scopes <= principal.scopes:
        return
    held, needed = in_order(principal.scopes), in_order(scopes - principal.scopes)
    wanted = written(in_order(principal.scopes | scopes))
    challenge = (
        f'Bearer error="insufficient_scope", scope="{wanted}", '
        f'resource_metadata="{principal.resource.metadata}"'
    )
    raise RpcError(
        FORBIDDEN,
        f"This requires the scope {written(needed)}. Authorize again with that scope.",
        {"code": "insufficient_scope", "scope": wanted, "held": held, "needed": needed},
        status=FORBIDDEN,
        headers=((b"www-authenticate", challenge.encode()),),
    )


def grantable(principal: Principal, scopes: frozenset[str]) -> bool:
    """Tell whether the user's role could let an agent use scopes, whatever is held (rules/agents#scopes)."""
    return len(allowed(scopes, principal.role)) == len(scopes)


def name_of(principal: Principal) -> str:
    """Name a principal in one text, for what is bound to it."""
    return f"{principal.grant_id} {principal.store_id}"


def _principal(found: Admitted, resource: StoreResource) -> Principal:
    return Principal(
        found.user_id,
        found.organization_id,
        found.store_id,
        found.shop_key,
        found.role,
        found.plan,
        found.client_id,
        found.grant_id,
        implied(allowed(found.scopes, found.role)),
        resource,
    )


def _bearer(scope: Scope) -> str | None:
    """Return the token of the header; one in the query, or in two headers, is none."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(sent) != 1:
        return None
    scheme, _, token = sent[0].partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return str(token.strip().decode("latin-1")) or None


def _unauthorized(resource: StoreResource, error: str | None) -> Denied:
    challenge = f'Bearer resource_metadata="{resource.metadata}", scope="{written(DEFAULT)}"'
    if error is not None:
        challenge = f'{challenge}, error="{error}"'
    detail = "The access token is missing or belongs to another resource. Authorize for this URL and send the token."
    return Denied(401, "unauthorized", detail, ((b"www-authenticate", challenge.encode()),))


def too_many(verdict: Verdict) -> RpcError:
    """Say that a limit is reached, and when it no longer is."""
    seconds = whole_seconds(verdict.retry_after)
    fields: dict[str, Any] = {
        "code": "too_many_requests",
        "retryAfter": seconds,
        "violated-policies": [one.name for one in verdict.violated],
    }
    headers = {"Retry-After": str(seconds), **standing_headers([verdict])}
    return RpcError(
        TOO_MANY,
        verdict.sentence,
        fields,
        status=TOO_MANY,
        headers=_encoded(headers),
    )


def _encoded(headers: dict[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.lower().encode(), value.encode()) for name, value in headers.items())
