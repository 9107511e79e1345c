"""How routes for people answer: with pages, when something goes wrong too."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote

import orjson
from babel import negotiate_locale
from quart import Blueprint, Quart, Response, g, redirect, request

from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import MissingCredential, Refusal, Unauthorized, Unprocessable
from tolsey.http.layout import shell, words
from tolsey.http.layout.catalogue import ENGLISH, LANGUAGES, _, speak
from tolsey.http.layout.forms import WHOLE, Filled, Misfilled, unreadable
from tolsey.http.layout.templates import Page, rendered
from tolsey.http.web.access import Caller
from tolsey.http.web.api_model import NUL
from tolsey.http.web.callers.cookies import SAFE_METHODS
from tolsey.http.web.limits import TooManyRequests
from tolsey.http.web.refusing import errors

SEE_OTHER: Final = 303
HOME: Final = "/"
ZONE: Final = "zone"
"""The cookie in which page.js tells in which time zone its reader is."""


@dataclass(frozen=True)
class RefusalPage(Page):
    """What a page says that cannot be shown; what broke has a number that finds it in the log."""

    template = "refusal.html"
    detail: str
    status: int = 400
    number: str = ""


SCRIPTED: Final = "script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; "
"""What a page with a script may do besides: load it from us and ask us, and write no markup with it."""
FRAMED: Final = "frame-src 'self'; "


def policy(
    form_targets: Sequence[str] = (), *, has_script: bool = False, has_frame: bool = False
) -> str:
    """Write a page's security policy; its forms go to us, and may be sent on to these origins."""
    targets = " ".join(("'self'", *form_targets))
    return (
        f"default-src 'none'; {SCRIPTED if has_script else ''}{FRAMED if has_frame else ''}style-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; "
        f"form-action {targets}; frame-ancestors 'none'; report-uri /api/security/csp-report"
    )


def shown(
    page: Page,
    status: int = 200,
    *,
    refusal: Refusal | Misfilled | None = None,
    form_targets: Sequence[str] = (),
) -> Response:
    """Answer with a page, which may tell a refusal; its forms may be sent on to the origins named."""
    status = refusal.status if refusal else status
    who = signed_in()
    around = shell.present() if page.has_shell else None
    viewer = who.email if who else around.viewer if around else None
    written = rendered(page, viewer, around)
    response = Response(written, status=status, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = policy(
        form_targets,
        has_script=page.has_script or around is not None,
        has_frame=page.has_frame,
    )
    response.vary.add("Accept-Language")
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
    if isinstance(refusal, MissingCredential):
        return _("This is not set up here yet: %(variable)s is not set.") % refusal.fields
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


def filled_again(
    values: Mapping[str, str],
    wrong: Refusal | Misfilled,
    *,
    place: str = WHOLE,
    say: Callable[[Refusal], str] = sentence,
) -> Filled:
    """Fill a form as it was sent, with what is wrong with it; a refusal is said at one place of it."""
    errors = wrong.errors if isinstance(wrong, Misfilled) else {place: say(wrong)}
    return Filled(values, errors)


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
        return shown(RefusalPage(sentence(error), error.status), refusal=error)

    async def on_processor(error: ProcessorError) -> Response:
        return await on_refusal(refusal_of(error))

    routes.before_request(require_text)
    routes.before_request(_for_reader)
    routes.register_error_handler(Refusal, on_refusal)
    routes.register_error_handler(ProcessorError, on_processor)
    routes.after_request(_translated)


def asked_language() -> str | None:
    """Tell which of our languages the browser likes best; None where it says none of them."""
    wanted = [tag for tag, quality in request.accept_languages if quality > 0]
    return negotiate_locale(wanted, LANGUAGES, sep="-")


async def _for_reader() -> None:
    """Write for whoever asks: in their language, in the frame of who they are."""
    speak(asked_language() or ENGLISH)
    words.tell_time_in(request.cookies.get(ZONE, ""))
    await shell.prepare()


def install(app: Quart) -> None:
    """Let every error be a page for whoever asked with a browser; all others get the problem as it is."""

    async def for_people(response: Response) -> Response:
        if response.mimetype != errors.PROBLEM:
            return response
        # RFC 9110 section 12.5.5: the answer depends on what its reader takes.
        response.vary.add("Accept")
        # A browser names text/html for what it shows; a client that takes anything is no browser.
        wanted = request.accept_mimetypes
        if wanted["text/html"] > wanted["application/json"]:
            return await _translated(response)
        return response

    app.after_request(for_people)


async def _translated(answer: Response) -> Response:
    """Say as a page what the API would answer; what is no problem stays."""
    if answer.mimetype != errors.PROBLEM:
        return answer
    problem = orjson.loads(await answer.get_data())
    await _for_reader()
    status = int(problem["status"])
    page = shown(RefusalPage(_(problem["detail"]), status, problem["requestId"]), status)
    for name in ("Retry-After", "Allow", "Vary", "WWW-Authenticate"):
        if name in answer.headers:
            page.headers[name] = answer.headers[name]
    return page
