"""How routes for people answer: with pages, when something goes wrong too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote

import orjson
import structlog
from quart import Blueprint, Response, g, redirect, request
from werkzeug.exceptions import HTTPException

from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import Refusal, Unauthorized, Unprocessable
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import unreadable
from tolsey.http.layout.templates import Page, rendered
from tolsey.http.web import errors
from tolsey.http.web.access import Caller
from tolsey.http.web.api_model import NUL
from tolsey.http.web.cookies import SAFE_METHODS
from tolsey.http.web.limits import TooManyRequests
from tolsey.runtime.errors import RuntimeFault
from tolsey.storage.errors import StorageError

SEE_OTHER: Final = 303
HOME: Final = "/billing"

log = structlog.get_logger()


@dataclass(frozen=True)
class RefusalPage(Page):
    """What a page says that cannot be shown."""

    template = "refusal.html"
    detail: str


def policy(form_targets: Sequence[str] = ()) -> str:
    """Write a page's security policy; its forms go to us, and may be sent on to these origins."""
    targets = " ".join(("'self'", *form_targets))
    return (
        "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; "
        f"form-action {targets}; frame-ancestors 'none'; report-uri /api/security/csp-report"
    )


def shown(
    page: Page,
    status: int = 200,
    *,
    refusal: Refusal | None = None,
    form_targets: Sequence[str] = (),
) -> Response:
    """Answer with a page, which may tell a refusal; its forms may be sent on to the origins named."""
    status = refusal.status if refusal else status
    who = signed_in()
    written = rendered(page, who.email if who else None)
    response = Response(written, status=status, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = policy(form_targets)
    response.headers["X-Frame-Options"] = "DENY"  # for browsers that do not read the policy
    # Without a referrer browsers say that a form comes from nowhere (Fetch, "Origin" header).
    response.headers["Referrer-Policy"] = "same-origin"
    if refusal and "retryAfter" in refusal.fields:
        response.headers["Retry-After"] = str(math.ceil(refusal.fields["retryAfter"]))
    return response


def sent_on(address: str) -> Response:
    """Send the browser on, with a GET."""
    return cast("Response", redirect(address, SEE_OTHER))


def signed_in() -> Caller | None:
    """Tell who is signed in, if it has been looked up."""
    return cast("Caller | None", g.get("caller"))


def login_address(next_path: str) -> str:
    """Give the address of the form that signs in and goes on to a path of ours."""
    return "/login" if next_path == HOME else f"/login?next={quote(next_path, safe='/')}"


def sentence(refusal: Refusal) -> str:
    """Say a refusal to a person."""
    if isinstance(refusal, TooManyRequests):
        return too_many(refusal.fields["retryAfter"])
    return _(refusal.detail)


def too_many(seconds: int) -> str:
    """Say when to try again, in whole hours or minutes, never too early."""
    if seconds > 3_600:  # noqa: PLR2004 - seconds of an hour
        return _("Too many attempts. Try again in %(hours)s hours.") % {
            "hours": -(-seconds // 3_600)
        }
    if seconds > 60:  # noqa: PLR2004 - seconds of a minute
        return _("Too many attempts. Try again in %(minutes)s minutes.") % {
            "minutes": -(-seconds // 60)
        }
    return _("Too many attempts. Try again in a minute.")


def answer_with_pages(routes: Blueprint) -> None:
    """Let the errors of these routes be pages; who must sign in first is led there and back.

    A form that holds a NUL is refused here, as a JSON body is where it is read: nothing keeps one.
    """

    async def require_text() -> None:
        sent = (await request.form).items(multi=True)
        if any(NUL in one for pair in sent for one in pair):
            raise Unprocessable(unreadable(), code="nul_in_form")

    async def on_refusal(error: Refusal) -> Response:
        if isinstance(error, Unauthorized):
            is_read = request.method in SAFE_METHODS
            return sent_on(login_address(request.full_path.rstrip("?") if is_read else HOME))
        return _page(sentence(error), refusal=error)

    async def on_processor(error: ProcessorError) -> Response:
        return await on_refusal(refusal_of(error))

    async def on_fault(error: RuntimeFault) -> Response:
        return await _translated(errors.refused(errors.refusal_of_fault(error)))

    async def on_storage(error: StorageError) -> Response:
        return await _translated(errors.refused(errors.refusal_of_storage(error)))

    async def on_http(error: HTTPException) -> Response:
        return await _translated(errors.http_failed(error))

    async def on_bug(error: Exception) -> Response:
        log.error("request.failed", path=request.path, method=request.method, exc_info=error)
        return await _translated(errors.internal())

    routes.before_request(require_text)
    routes.register_error_handler(Refusal, on_refusal)
    routes.register_error_handler(ProcessorError, on_processor)
    routes.register_error_handler(RuntimeFault, on_fault)
    routes.register_error_handler(StorageError, on_storage)
    routes.register_error_handler(HTTPException, on_http)
    routes.register_error_handler(Exception, on_bug)


async def _translated(problem: Response) -> Response:
    """Say as a page what the API would answer."""
    said = orjson.loads(await problem.get_data())
    page = _page(_(said["detail"]), int(said["status"]))
    for name in ("Retry-After", "Allow"):
        if name in problem.headers:
            page.headers[name] = problem.headers[name]
    return page


def _page(detail: str, status: int = 200, *, refusal: Refusal | None = None) -> Response:
    return shown(RefusalPage(detail), status, refusal=refusal)
