"""Limits of routes, and the headers that tell callers about them.

The headers are those of draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy: "name";q=5;w=60`
and `RateLimit: "name";r=4;t=12`.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast

from quart import Quart, Response, g, request

from tolsey.actors.refusals import Refusal
from tolsey.http import addresses
from tolsey.http.access import Caller
from tolsey.http.context import service
from tolsey.storage.limits import Policy, Verdict, whole_seconds

View = TypeVar("View", bound=Callable[..., Awaitable[Any]])

ACCOUNT_CREATION = Policy("account-creation", 5, 86_400)
LOGINS = Policy("logins", 60, 60)
LOGINS_PER_ACCOUNT = Policy("logins-per-account", 20, 900)
STORE_CREATION = Policy("store-creation", 60, 3_600)


class TooManyRequests(Refusal):
    """A limit is reached; `retryAfter` seconds later it is not."""

    status = 429
    code = "too_many_requests"


def identity() -> str:
    """Say whom a call counts against: the user who is signed in, else the client's address."""
    caller = cast("Caller | None", g.get("caller"))
    if caller is not None:
        return f"user:{caller.user_id}"
    return f"address:{addresses.identity(request.scope, service().settings.trusted_proxies)}"


async def admit(*policies: Policy, whose: str | None = None) -> Verdict:
    """Count a call, or refuse it with 429."""
    verdict = await service().limits.admit(policies, whose or identity())
    g.rate_limit = verdict
    if not verdict.allowed:
        raise TooManyRequests(
            f"The limit is {verdict.policy.limit} in {verdict.policy.window_seconds} seconds.",
            retryAfter=whole_seconds(verdict.retry_after),
        )
    return verdict


def limited(*policies: Policy) -> Callable[[View], View]:
    """Let a view be called only so often; put it below the access decorator."""

    def limit(view: View) -> View:
        @wraps(view)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            await admit(*policies)
            return await view(*args, **kwargs)

        return cast("View", counted)

    return limit


def headers(verdict: Verdict) -> dict[str, str]:
    """Write the headers that tell a caller where they stand."""
    policy = verdict.policy
    return {
        "RateLimit-Policy": f'"{policy.name}";q={policy.limit};w={policy.window_seconds}',
        "RateLimit": f'"{policy.name}";r={verdict.remaining};t={whole_seconds(verdict.retry_after)}',
    }


async def _tell(response: Response) -> Response:
    verdict = cast("Verdict | None", g.get("rate_limit"))
    if verdict is not None:
        response.headers.update(headers(verdict))
    return response


def install(app: Quart) -> None:
    """Tell callers of limited routes where they stand."""
    app.after_request(_tell)
