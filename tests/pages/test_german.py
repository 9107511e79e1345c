"""Pages and mails are whole in German: every sentence of the catalogue, with its places, dates and amounts."""

import io
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import httpx
import pytest
from babel.messages.catalog import Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_keywords
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import tolsey
from tests.http.people import PASSWORD, settings_of
from tolsey.actors.mail import MailEvent
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.launch import titles
from tolsey.http.layout import catalogue, words
from tolsey.http.layout.catalogue import LANGUAGES, LOCALES, read_in
from tolsey.http.mail.letters import letter
from tolsey.service import running

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tolsey.__file__).parent
PLACE = re.compile(r"%\(\w+\)s|%%|<[^<>]+>")
OTHERS = [name for name in LANGUAGES if name != catalogue.ENGLISH]
AT = datetime(2026, 11, 23, 15, 4, tzinfo=UTC)


def places(text: str) -> list[str]:
    """List what a sentence puts in, and its marks, each once."""
    return sorted(set(PLACE.findall(text)))


def said_by_pages() -> Iterator[str | tuple[str, ...]]:
    """List what the templates and the Python of pages and mails say, as `make messages` does."""
    listed = re.search(r"addprefix --keyword ,([^)]*)\)", (ROOT / "Makefile").read_text())
    assert listed is not None
    keywords = {**DEFAULT_KEYWORDS, **parse_keywords(listed[1].split())}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["babel"]["mappings"]
    methods = [(one["pattern"], one["method"]) for one in settings]
    options = {
        one["pattern"]: {name: one[name] for name in one if name not in {"pattern", "method"}}
        for one in settings
    }
    found = extract_from_dir(
        str(PACKAGE / "http"), methods, options, keywords=keywords, comment_tags=()
    )
    return (message for _file, _line, message, _comments, _context in found)


def translated(language: str) -> dict[str | tuple[str, ...], Message]:
    with (Path(LOCALES) / language / "LC_MESSAGES" / "tolsey.po").open("rb") as file:
        said = [one for one in read_po(file, locale=language) if one.id]
    return {one.id if isinstance(one.id, str) else tuple(one.id): one for one in said}


def said_in(compiled: GNUTranslations) -> dict[Any, str]:
    """Give what a compiled catalogue says, without its head, which has the time in it."""
    return {id: text for id, text in vars(compiled)["_catalog"].items() if id}


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_of_pages_and_mails_is_translated(language: str) -> None:
    said = translated(language)
    left = {one for one in said_by_pages() if one and not (one in said and said[one].string)}
    assert left == set(), "write them: make messages, then tolsey/http/locale/*/LC_MESSAGES"


def test_what_the_playbook_says_to_people_is_in_the_catalogue() -> None:
    sections = {one.title for one in PLAYBOOK.sections}
    assert sections | {one.title for one in PLAYBOOK.milestones.values()} == set(titles.TITLES)
    asked = [one.checkpoint for one in PLAYBOOK.milestones.values() if one.checkpoint]
    assert {one.instructions for one in asked} == set(titles.INSTRUCTIONS)
    assert {one.why for one in asked} == set(titles.REASONS)


def test_a_mail_names_the_steps_of_a_launch_in_the_language_of_its_reader() -> None:
    steps = ("Markets, shipping zones and rates", "Choose a paid plan")
    facts = {"store": "sto_1", "shop": "demo.example", "steps": ", ".join(steps)}
    read = letter(MailEvent.LAUNCH_WAITS, {**facts, "organization": "Ann & Co"}, language="de")
    with read_in("de"):
        assert ", ".join(map(catalogue._, steps)) in read.text
    assert steps[1] not in read.text + read.html
    plain = letter(MailEvent.LAUNCH_WAITS, {**facts, "organization": "Ann & Co"})
    assert facts["steps"] in plain.text


@pytest.mark.parametrize("language", OTHERS)
def test_every_translation_keeps_the_places_and_the_marks_of_its_sentence(language: str) -> None:
    for id, message in translated(language).items():
        sources = [id] if isinstance(id, str) else list(id)
        said = message.string
        strings = [said] if isinstance(said, str) else list(said or ())
        assert all(strings), id
        assert places(sources[-1]) == places(strings[-1]), id


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_loaded_is_what_was_written(language: str) -> None:
    folder = Path(LOCALES) / language / "LC_MESSAGES"
    with (folder / "tolsey.po").open("rb") as file:
        said = read_po(file, locale=language)
    made = io.BytesIO()
    write_mo(made, said)
    made.seek(0)
    with (folder / "tolsey.mo").open("rb") as file:
        assert said_in(GNUTranslations(file)) == said_in(GNUTranslations(made)), "make messages"


def test_amounts_and_moments_are_written_as_their_reader_does() -> None:
    with read_in("de"):
        assert words.credit(1_234_500_000) == "1.234,50\N{NO-BREAK SPACE}$"
        assert words.whole_credit(49_000_000) == "49\N{NO-BREAK SPACE}$"
        assert words.credit(1) == "0,000001\N{NO-BREAK SPACE}$"
        assert words.money(-19_000_050, "EUR") == "-190.000,50 EUR"
        assert words.day(AT) == "23. Nov. 2026"
        assert words.moment(AT) == "23. Nov. 2026, 15:04 UTC"
        assert words.number(12_500.5) == "12.500,5"
    assert words.credit(1_234_500_000) == "$1,234.50"
    assert words.money(-19_000_050, "EUR") == "EUR -190,000.50"
    assert words.moment(AT) == "23 Nov 2026, 15:04 UTC"


async def test_a_browser_gets_its_language_and_its_zone_and_a_program_gets_english(
    database_url: str, redis_url: str
) -> None:
    settings = settings_of(
        base_url="http://127.0.0.1:1", database_url=database_url, redis_url=redis_url
    )
    async with (
        running(settings, timers=False) as live,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(live.app),
            base_url=settings.base_url,
            headers={"Origin": settings.base_url, "Accept": "text/html"},
        ) as browser,
    ):
        for asked, language, said in (
            ("de-AT,de;q=0.9,en;q=0.8", "de", "Willkommen zurück."),
            ("fr,de;q=0.3,en;q=0.2", "de", "Willkommen zurück."),
            ("en-GB,de;q=0.5", "en", "Welcome back."),
            ("fr", "en", "Welcome back."),
            ("de;q=x", "en", "Welcome back."),
        ):
            page = await browser.get("/login", headers={"Accept-Language": asked})
            assert f'<html lang="{language}"' in page.text
            assert said in page.text
            assert "Accept-Language" in page.headers["Vary"]
        german = {"Accept-Language": "de"}
        body = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "A"}
        assert (await browser.post("/api/auth/signup", json=body)).status_code == 201
        sessions = "/account/sessions"
        lines = (await browser.get(sessions, headers=german)).text
        assert "Abmelden" in lines
        refused = await browser.get(
            "/api/stores/none", headers={**german, "Accept": "application/json"}
        )
        assert (
            refused.json()["detail"]
            == "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
        browser.cookies.set("zone", "../../etc/passwd")
        assert (await browser.get("/mail", headers=german)).status_code == 200
