"""How a mail reads: one template for an event, written as text and as HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tolsey.actors.mail import MailEvent
from tolsey.http.clients.smtp import one_line
from tolsey.http.deals.pages.words import STAGES
from tolsey.http.launch.titles import in_words
from tolsey.http.layout.catalogue import ENGLISH, _, marked, read_in
from tolsey.http.layout.templates import ENVIRONMENT
from tolsey.http.layout.words import day, money
from tolsey.http.mail.book import StatusMail

TEXT: Final = ENVIRONMENT.overlay(autoescape=False)
"""Plain text isn't escaped."""
DATES: Final = ("asked", "day", "nextAttempt", "until")
"""Facts that are ISO dates, shown in the reader's language."""
DEAL_NEWS: Final[Mapping[str, str]] = {
    "access.request": marked("Access requested"),
    "access.approve": marked("Access approved"),
    "access.decline": marked("Access declined"),
    "nda.signed_by_all": marked("NDA signed by both parties"),
    "loi.signed_by_all": marked("Letter of intent signed by both parties"),
    "apa.signed_by_all": marked("Purchase agreement signed by both parties"),
    "signature.requested": marked("Document ready to sign"),
    "signature.ended": marked("Document was not signed"),
    "offer.submit": marked("New offer"),
    "offer.accepted": marked("Offer accepted"),
    "offer.accept": marked("Offer accepted"),
    "offer.reject": marked("Offer declined"),
    "offer.withdraw": marked("Offer withdrawn"),
    "offer.counter": marked("New counteroffer"),
    "offer.counter_created": marked("New counteroffer"),
    "offer.timer": marked("Offer expired"),
    "offer.supersede": marked("Price negotiation reopened"),
    "offer.reopen": marked("Price negotiation reopened"),
    "diligence.open": marked("Due diligence started"),
    "diligence.resolve": marked("Due diligence item completed"),
    "fasttrack.agree": marked("Fast track approved by the other party"),
    "exclusivity.propose": marked("Longer exclusivity proposed"),
    "exclusivity.agree": marked("Exclusivity extended"),
    "exclusivity.lapsed": marked("Exclusivity ended"),
    "escrow.open": marked("Escrow details added"),
    "funding.confirm": marked("Escrow payment confirmed"),
    "escrow.funded": marked("Escrow funded"),
    "escrow.released": marked("Escrow released to the seller"),
    "escrow.refunded": marked("Escrow refunded to the buyer"),
    "transfer.start": marked("Handover started"),
    "transfer.deliver": marked("Handover item delivered"),
    "transfer.confirm": marked("Handover item reviewed"),
    "deal.close": marked("Deal closed"),
    "withdraw": marked("Negotiations ended"),
    "decline": marked("Negotiations ended"),
    "cancel.propose": marked("Cancellation proposed"),
    "cancel.agree": marked("Deal cancelled by both parties"),
    "admin.cancel": marked("Deal cancelled by our team"),
    "dispute.open": marked("Dispute opened"),
    "dispute.resume": marked("Dispute resolved, handover continues"),
    "dispute.refund": marked("Dispute resolved, buyer refunded"),
    "dispute.release": marked("Dispute resolved, seller paid"),
    "refund.request": marked("Refund requested"),
    "refund.accept": marked("Refund approved"),
    "refund.deny": marked("Refund declined"),
    "refund.withdraw": marked("Refund request withdrawn"),
    "listing.gone": marked("Listing no longer available"),
    "timer.14d": marked("Deal expired after 14 days without activity"),
    "timer.30d": marked("Deal expired, nothing signed for 30 days"),
    "timer.21d_unfunded": marked("Deal cancelled, escrow not funded in 21 days"),
    "timer.72h": marked("Refund request sent to our team"),
    "file.added": marked("File added to the data room"),
}
"""The subject of the mail about each event of a deal."""
ALERTS: Final[Mapping[str, str]] = {
    "chargebacks": marked("Too many chargebacks"),
    "payment_webhooks": marked("Stripe webhooks are failing"),
    "mcp_rate_limits": marked("Agents exceed their rate limits"),
}
"""The subject of the mail about each alert."""
ROLES: Final[Mapping[str, str]] = {
    "owner": marked("Owner"),
    "admin": marked("Admin"),
    "member": marked("Member"),
}
WORDS: Final = {"alert": ALERTS, "event": DEAL_NEWS, "role": ROLES, "stage": STAGES}
"""Facts that are codes, with the words shown for each."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail as it reads."""

    subject: str
    text: str = field(repr=False)
    html: str = field(repr=False)


def letter(
    event: MailEvent | StatusMail,
    facts: Mapping[str, str],
    *,
    link: str = "",
    unsubscribe: str = "",
    lines: Sequence[tuple[str, str]] = (),
    language: str = ENGLISH,
) -> Letter:
    """Write the mail of an event in a language; facts are people's words, so each is one line and escaped.

    `lines` are what else it names, each with its address.
    """
    with read_in(language):
        return _written(event, facts, link, unsubscribe, lines)


def _written(
    event: MailEvent | StatusMail,
    facts: Mapping[str, str],
    link: str,
    unsubscribe: str,
    lines: Sequence[tuple[str, str]],
) -> Letter:
    filled = {name: one_line(fact) for name, fact in facts.items()}
    if "minor" in filled:
        filled["amount"] = money(int(filled["minor"]), filled["currency"].upper())
    if "steps" in filled:
        filled["steps"] = in_words(filled["steps"])
    for name, words in WORDS.items():
        if name in filled:
            filled[name] = _(words.get(filled[name], filled[name]))
    for name in DATES:
        if filled.get(name):
            filled[name] = day(datetime.fromisoformat(filled[name]).replace(tzinfo=UTC))
    said = {**filled, "link": link, "unsubscribe": unsubscribe, "lines": lines}
    name = f"mail/{event}.j2"
    template = TEXT.get_template(name)
    context = template.new_context({**said, "layout": "mail/layout.txt"})
    subject = one_line("".join(template.blocks["subject"](context)))
    return Letter(
        subject,
        template.render({**said, "layout": "mail/layout.txt", "subject": subject}),
        ENVIRONMENT.get_template(name).render(
            {**said, "layout": "mail/layout.html", "subject": subject}
        ),
    )
