"""How routes are limited, and the headers that tell callers where they stand.

The headers are those of draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy: "name";q=5;w=60`
and `RateLimit: "name";r=4;t=12`, one item for each policy that the call counted against. The limits
themselves are in `policies`.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from quart import Quart, Response, g, request

from tolsey.actors.refusals import Refusal
from tolsey.http.web.access import Caller
from tolsey.http.web.callers import addresses
from tolsey.http.web.context import service
from tolsey.storage.limits import Policy, Verdict, whole_seconds

ATTRIBUTE = "limited_by"
View = TypeVar("View", bound=Callable[..., Awaitable[Any]])


class TooManyRequests(Refusal):
    """A limit is reached; `retryAfter` seconds later it is not."""

    status = 429
    code = "too_many_requests"

    def __init__(self, verdict: Verdict) -> None:
        named: dict[str, Any] = {
            "violated-policies": [violated.name for violated in verdict.violated]
        }
        super().__init__(
            verdict.sentence,
            retryAfter=whole_seconds(verdict.retry_after),
            **named,
        )


def identity() -> str:
    """Say whom a call counts against: the user who is signed in, else the client's address."""
    caller = cast("Caller | None", g.get("caller"))
    if caller is not None:
        return f"user:{caller.user_id}"
    return f"address:{addresses.identity(request.scope, service().settings.believed_proxies)}"


def of_organization(organization_id: str) -> str:
    """Say that calls count against an organization, whoever of its members makes them."""
    return f"organization:{organization_id}"


async def admit(*policies: Policy, whose: str | None = None) -> Verdict:
    """Count a call against all policies at once, or refuse it with 429 and count it for none."""
    verdict = await service().limits.admit(policies, whose or identity())
    g.setdefault("rate_limits", []).append(verdict)
    if not verdict.allowed:
        raise TooManyRequests(verdict)
    return verdict


def limited(*policies: Policy) -> Callable[[View], View]:
    """Let a view be called only so often; put it below the access decorator."""

    def limit(view: View) -> View:
        @wraps(view)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            await admit(*policies)
            return await view(*args, **kwargs)

        counted.__dict__[ATTRIBUTE] = policies
        return cast("View", counted)

    return limit


def policies_of(view: Callable[..., Any]) -> tuple[Policy, ...]:
    """Tell what limits a view before it runs."""
    return getattr(view, ATTRIBUTE, ())


def headers(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Write the headers that tell a caller where they stand; none when nothing limits them."""
    standings = [standing for verdict in verdicts for standing in verdict.standings]
    if not standings:
        return {}
    return {
        "RateLimit-Policy": ", ".join(
            f'"{one.policy.name}";q={one.policy.limit};w={one.policy.window_seconds}'
            for one in standings
        ),
        "RateLimit": ", ".join(
            f'"{one.policy.name}";r={one.remaining};t={whole_seconds(one.wait_seconds)}'
            for one in standings
        ),
    }


async def _tell(response: Response) -> Response:
    response.headers.update(headers(g.get("rate_limits", [])))
    return response


def install(app: Quart) -> None:
    """Tell callers of limited routes where they stand."""
    app.after_request(_tell)
