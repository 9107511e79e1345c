"""Mails in a browser: those of this machine, and the end of a topic (RFC 8058)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.templates import Page
from tolsey.http.mail.book import KINDS, MailTopic
from tolsey.http.mail.office import DIGEST_AT
from tolsey.http.web.access import caller, page, public, require_own_machine
from tolsey.http.web.context import now, service
from tolsey.storage.people import mail as mails
from tolsey.storage.records.mail import MailPace, OutboundMail
from tolsey.storage.status import incidents

SHOWN: Final = 100
CHOICES: Final = "/account/mails"
CHOSEN: Final[Sequence[MailTopic]] = tuple(one for one in KINDS if one is not MailTopic.STATUS)
"""What somebody with an account chooses; what breaks and mends is told to whoever subscribed to it."""
NO_SUCH: Final = "This link is invalid or incomplete. Copy it from the email again."
HTML_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

routes = Blueprint("mail_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True)
class MailsPage(Page):
    """The latest mails."""

    template = "people/mails.html"
    mails: Sequence[OutboundMail]


@dataclass(frozen=True)
class MailPage(Page):
    """A mail, and the lines of what it says while they are kept."""

    template = "people/mail.html"
    mail: OutboundMail
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class UnsubscribePage(Page):
    """Whether no more mails of a topic are wanted, or that none are written."""

    template = "people/unsubscribe.html"
    recipient: str
    topic: str
    token: str
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class MailChoicesPage(Page):
    """Which mails the reader gets, by what they are about."""

    template = "people/mail_choices.html"
    topics: Mapping[MailTopic, MailPace]
    """How mails of each are wanted."""
    is_done: bool = False
    daily_at = DIGEST_AT

    @property
    def paces(self) -> dict[str, str]:
        """How mails of a kind can be wanted."""
        return {
            MailPace.AT_ONCE: _("At once"),
            MailPace.DAILY: _("Once a day"),
            MailPace.NEVER: _("Never"),
        }


@routes.get(CHOICES)
@page
async def show_choices() -> Response:
    """Show which mails the reader gets."""
    chosen = await mails.paces(service().database, caller().email)
    topics = {one: chosen.get(one, MailPace.AT_ONCE) for one in CHOSEN}
    return shown(MailChoicesPage(topics=topics, is_done="done" in request.args))


@routes.post(CHOICES)
@page
async def choose() -> Response:
    """Keep which mails the reader wants; what is about security, money or law comes all the same."""
    sent, email = await forms.sent(), caller().email
    async with service().database.transaction() as tx:
        for topic in CHOSEN:
            if sent.get(topic) in set(MailPace):
                await mails.choose(tx, email, topic, MailPace(sent[topic]), now())
    return sent_on(f"{CHOICES}?done")


@routes.get("/mail")
@public
async def list_mail() -> Response:
    """Show the latest mails, on loopback only."""
    require_own_machine()
    return shown(MailsPage(await mails.listed(service().database, SHOWN, None)))


@routes.get("/mail/<mail_id>")
@public
async def read_mail(mail_id: str) -> Response:
    """Show what a mail says, on loopback only."""
    require_own_machine()
    mail = await mails.find(service().database, mail_id)
    if mail is None:
        raise NotFound("This email doesn't exist. Check the list of emails.")
    content = service().mail.content(mail)
    lines = [line for line in content.text.splitlines() if line] if content else []
    return shown(MailPage(mail, lines))


@routes.get("/mail/<mail_id>/html")
@public
async def read_mail_as_html(mail_id: str) -> Response:
    """Show a mail as its reader sees it, on loopback only."""
    require_own_machine()
    mail = await mails.find(service().database, mail_id)
    content = mail and service().mail.content(mail)
    if not content:
        raise NotFound(
            "This email doesn't exist, or its content was already deleted. Check the list of"
            " emails."
        )
    response = Response(content.html, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = HTML_POLICY
    return response


@routes.get("/mail/unsubscribe/<token>")
@public
async def ask_to_unsubscribe(token: str) -> Response:
    """Ask whether no more is wanted; to look at the address decides nothing (RFC 8058, section 4)."""
    topic, recipient = _whose(token)
    return _answered(topic, recipient, token, is_done=False)


@routes.post("/mail/unsubscribe/<token>")
@public
async def unsubscribe(token: str) -> Response:
    """Write no more of a topic to an address, at once and without a question (RFC 8058, section 3.1)."""
    topic, recipient = _whose(token)
    async with service().database.transaction() as tx:
        # Who subscribed without an account is forgotten whole; they may subscribe again.
        if topic is MailTopic.STATUS:
            await incidents.unsubscribe(tx, recipient)
        elif topic is MailTopic.DAILY:
            await mails.refuse_daily(tx, recipient, now())
        else:
            await mails.choose(tx, recipient, topic, MailPace.NEVER, now())
    return _answered(topic, recipient, token, is_done=True)


def _answered(topic: MailTopic, recipient: str, token: str, *, is_done: bool) -> Response:
    return shown(
        UnsubscribePage(recipient=recipient, topic=topic.words, token=token, is_done=is_done)
    )


def _whose(token: str) -> tuple[MailTopic, str]:
    found = service().mail.unsubscribed(token)
    if found is None:
        raise NotFound(NO_SUCH)
    return found
