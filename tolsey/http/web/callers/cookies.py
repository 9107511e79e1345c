"""The session cookie, and the origin check that goes with it (rules/accounts#sessions)."""

from urllib.parse import urlsplit

from quart import Quart, Response, request

from tolsey.actors.refusals import Forbidden
from tolsey.http.web.context import service
from tolsey.setting_types import is_loopback
from tolsey.storage.people.tokens import SESSION_LIFETIME

SIGNING_IN = ("/api/auth/", "/signup", "/login")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class ForeignOrigin(Forbidden):
    """Another site's page sent this with the user's cookie."""

    code = "foreign_origin"


def cookie_name() -> str:
    """`__Host-session` on https, where browsers then accept it from this very host only."""
    return "__Host-session" if service().settings.is_https else "session"


def session_token() -> str | None:
    """Return the token that the request's session cookie holds."""
    return request.cookies.get(cookie_name()) or None


def give_session(response: Response, token: str) -> None:
    """Set the session cookie: host-only, unreadable to scripts, not sent along by other sites."""
    response.set_cookie(
        cookie_name(),
        token,
        max_age=int(SESSION_LIFETIME.total_seconds()),
        path="/",
        secure=service().settings.is_https,
        httponly=True,
        samesite="Lax",
    )


def take_session(response: Response) -> None:
    """Make the browser forget the session cookie."""
    response.delete_cookie(
        cookie_name(),
        path="/",
        secure=service().settings.is_https,
        httponly=True,
        samesite="Lax",
    )


def is_own(origin: str) -> bool:
    """Tell whether an `Origin` is this service's own, letter for letter.

    A service on loopback is the same under each of its names and whichever port it was started
    on, as long as the page came from where the request goes.
    """
    settings = service().settings
    if origin == settings.base_url:
        return True
    if not settings.is_local:
        return False
    own = f"{urlsplit(settings.base_url).scheme}://{request.headers.get('Host', '')}"
    return origin == own and is_loopback(urlsplit(own).hostname or "")


async def check_origin() -> None:
    """Refuse a state-changing request that another site's page may have sent."""
    if request.method in SAFE_METHODS:
        return
    origin = request.headers.get("Origin")
    if origin is not None and is_own(origin):
        return
    if session_token() is not None:
        if origin is None and request.headers.get("Sec-Fetch-Site") == "same-origin":
            return
        raise ForeignOrigin(
            "The request doesn't come from this service's own pages. Send the service's address"
            " as the `Origin` header."
        )
    # Without a cookie there is nothing to steal, except that a foreign page could sign a
    # visitor in as someone else.
    if origin is not None and request.path.startswith(SIGNING_IN):
        raise ForeignOrigin(
            "The request doesn't come from this service's own pages. Send the service's address"
            " as the `Origin` header."
        )


def install(app: Quart) -> None:
    """Check every request of the app."""
    app.before_request(check_origin)
