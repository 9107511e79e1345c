"""Every mail in both languages: its subject, its one button, and text that equals its HTML."""

import re
from html import unescape

import pytest

from tolsey.actors.mail import MailEvent
from tolsey.http.deals.pages.words import EVENTS
from tolsey.http.layout.catalogue import LANGUAGES
from tolsey.http.mail.book import BOOK, StatusMail
from tolsey.http.mail.letters import DEAL_NEWS, letter

SHOP = "loom.myshopify.com"
LINK, UNSUBSCRIBE = "https://tolsey.example/a?b=1&c=2", "https://tolsey.example/mail/unsubscribe/x"
FACTS = {
    **dict.fromkeys(("account", "deal", "message", "name", "said", "state", "store", "title"), "x"),
    **dict.fromkeys(("asked", "day", "nextAttempt", "until"), "2026-12-04"),
    "alert": "chargebacks",
    "stage": "NDA_PENDING",
    "event": "access.approve",
    "yours": "yes",
    "email": "bob@example.com",
    "inviter": "ann@example.com",
    "organization": "Loom & Co",
    "minor": "7900",
    "currency": "usd",
    "count": "3",
    "rest": "1",
    "role": "admin",
    "shop": SHOP,
    "steps": "Choose a paid plan",
    "why": "uninstalled",
}


def words(text: str) -> list[str]:
    """List the words of a text, in any order, without the marks between them."""
    return sorted(re.sub(r"(?<!\S)--?(?!\S)|:(?=\s|$)", " ", text).split())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("event", list(BOOK))
def test_text_and_html_of_every_mail_hold_the_same_words(
    event: MailEvent | StatusMail, language: str
) -> None:
    link = LINK if BOOK[event].path else ""
    mail = letter(event, FACTS, link=link, unsubscribe=UNSUBSCRIBE, language=language)
    assert f'<html lang="{language}">' in mail.html
    without_title = re.sub(r"<title>.*</title>", "", mail.html)
    shown = unescape(re.sub(r"<[^>]+>", " ", without_title))
    assert words(shown) == words(mail.text.replace(UNSUBSCRIBE, ""))
    assert mail.html.count("display:inline-block") == bool(link)
    assert len(mail.subject) <= 60


@pytest.mark.parametrize("event", list(BOOK))
def test_every_mail_is_translated(event: MailEvent | StatusMail) -> None:
    english, german = (letter(event, FACTS, language=one) for one in ("en", "de"))
    assert english.text != german.text


def test_the_mail_of_a_deal_shows_words_in_place_of_codes() -> None:
    english, german = (letter(MailEvent.DEAL_MOVED, FACTS, language=one) for one in ("en", "de"))
    assert english.subject == "x: Access approved"
    assert german.subject == "x: Zugang gewährt"
    for read in (english, german):
        assert "NDA_PENDING" not in read.text
        assert "access.approve" not in read.text


def test_every_event_of_a_deal_has_a_subject() -> None:
    assert DEAL_NEWS.keys() == EVENTS.keys()


def test_a_mail_writes_dates_as_its_reader_does() -> None:
    english, german = (
        letter(MailEvent.SHOP_ERASURE_NEARS, FACTS, language=one) for one in ("en", "de")
    )
    assert "4 Dec 2026" in english.subject
    assert "4. Dez. 2026" in german.subject


def test_the_mail_of_a_payment_that_is_not_tried_again_says_so() -> None:
    mail = letter(MailEvent.PAYMENT_FAILED, {**FACTS, "nextAttempt": ""})
    assert "We won't try again automatically." in mail.text
