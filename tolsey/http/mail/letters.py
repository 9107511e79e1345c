"""How a mail reads: one template for an event, written as text and as HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tolsey.actors.mail import MailEvent
from tolsey.http.clients.smtp import one_line
from tolsey.http.launch.titles import in_words
from tolsey.http.layout.catalogue import ENGLISH, read_in
from tolsey.http.layout.templates import ENVIRONMENT
from tolsey.http.layout.words import money
from tolsey.http.mail.book import StatusMail

TEXT: Final = ENVIRONMENT.overlay(autoescape=False)
"""The text of a mail is no markup."""


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
