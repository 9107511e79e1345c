"""Who wants mails once a day gets one of them, with everything in it and nothing twice."""

from datetime import UTC, date, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from tests.http.mail.post import Post
from tests.http.mail.test_sending import invite, try_now
from tests.http.people import Browser, Clock
from tolsey.actors.mail import MailEvent, WriteDigest
from tolsey.http.mail.book import MailTopic
from tolsey.http.mail.office import DIGEST_LINES, digest_day
from tolsey.service import Running
from tolsey.storage.people import mail as mails
from tolsey.storage.records.mail import MailPace

BOB = "bob@example.com"


async def want(live: Running, topic: MailTopic, pace: MailPace) -> None:
    async with live.service.database.transaction() as tx:
        await mails.choose(tx, BOB, topic, pace, live.service.clock())


async def tell(live: Running, about: str, event: MailEvent = MailEvent.CONNECTION_BROKEN) -> None:
    async with live.service.database.transaction() as tx:
        facts = {
            "shop": f"{about}.example",
            "why": "uninstalled",
            "organization": "Bob's",
            "day": "2026-12-04",
            "name": "N",
        }
        link = f"http://127.0.0.1:8000/{about}?a=1&b=2"
        await live.service.mail.write(tx, event, BOB, about=about, facts=facts, link=link)


async def states(live: Running) -> dict[str, str]:
    rows = await live.service.database.fetch("SELECT event, about, state FROM outbound_mail")
    return {f"{row['event']} {row['about']}".removesuffix(" "): row["state"] for row in rows}


@pytest.mark.parametrize(
    ("at", "day"),
    [
        (datetime(2026, 3, 1, 5, 54, 59, tzinfo=UTC), date(2026, 3, 1)),
        (datetime(2026, 3, 1, 5, 55, tzinfo=UTC), date(2026, 3, 2)),
        (datetime(2026, 3, 1, 6, 0, tzinfo=UTC), date(2026, 3, 2)),
        (datetime(2026, 3, 1, 23, 58, tzinfo=UTC), date(2026, 3, 2)),
        (datetime.fromisoformat("2026-03-01T02:00+09:00"), date(2026, 3, 1)),
    ],
)
def test_what_happens_is_told_in_the_next_mail_of_a_day(at: datetime, day: date) -> None:
    assert digest_day(at) == day


async def test_two_things_of_a_day_are_one_mail(live: Running, post: Post, clock: Clock) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await tell(live, "first")
    await tell(live, "second")
    await tell(live, "second")
    (row,) = await live.service.database.fetch("SELECT due_at, name FROM outbox")
    assert (row["name"], row["due_at"]) == (
        "WriteDigest",
        datetime.combine(digest_day(clock()), datetime.min.time().replace(hour=6), UTC),
    )
    assert post.mails == []
    await try_now(live)
    mail = await post.received()
    assert mail["Subject"] == "2 updates since yesterday"
    text, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    assert "- first.example is no longer connected" in text.get_content()
    assert "http://127.0.0.1:8000/second?a=1&b=2" in text.get_content()
    assert 'href="http://127.0.0.1:8000/second?a=1&amp;b=2"' in html.get_content()
    found = await states(live)
    assert found.pop("connection_broken first") == "sent"
    assert found.pop("connection_broken second") == "sent"
    assert len(found) == 1


async def test_a_mail_of_a_day_that_is_written_again_is_not_sent_again(
    live: Running, post: Post
) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await tell(live, "first")
    (row,) = await live.service.database.fetch("SELECT id FROM outbound_mail")
    for _ in range(2):
        await live.service.mail.write_digest(WriteDigest(mail_id=row["id"]))
    await live.service.mail.write_digest(WriteDigest(mail_id="mail_of_nobody"))
    written = await states(live)
    assert sorted(written) == ["connection_broken first", f"daily_digest {row['id']}"]


async def test_what_is_wanted_at_once_or_is_about_money_does_not_wait(
    live: Running, post: Post
) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await invite(live, BOB)
    mail = await post.received()
    assert "Ann's" in mail["Subject"]
    await tell(live, "first", MailEvent.SHOP_ERASURE_NEARS)
    assert (await states(live))["shop_erasure_nears first"] == "waiting"
    await post.received(2)


async def test_what_is_wanted_no_more_by_then_is_left_out(live: Running, post: Post) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await tell(live, "first")
    await want(live, MailTopic.STORES, MailPace.NEVER)
    await try_now(live)
    await tell(live, "second")
    (row,) = await live.service.database.fetch("SELECT id FROM outbound_mail")
    await live.service.mail.write_digest(WriteDigest(mail_id=row["id"]))
    assert await states(live) == {"connection_broken first": "given_up"}
    assert post.mails == []


async def test_one_click_ends_all_that_comes_once_a_day_and_nothing_else(
    live: Running, post: Post, browser: Browser
) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await want(live, MailTopic.LAUNCHES, MailPace.DAILY)
    await tell(live, "first")
    await try_now(live)
    mail = await post.received()
    reader = browser()
    address = mail["List-Unsubscribe"].strip("<>")
    assert "emails about your daily summary" in (await reader.get(address)).text
    del reader.headers["Origin"]
    assert (await reader.post(address)).status_code == 200
    assert await mails.paces(live.service.database, BOB) == {
        MailTopic.STORES: MailPace.NEVER,
        MailTopic.LAUNCHES: MailPace.NEVER,
    }
    await invite(live, BOB)
    await post.received(2)


async def test_a_day_with_very_much_is_one_mail_that_counts_the_rest(
    live: Running, post: Post
) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    for n in range(DIGEST_LINES + 2):
        await tell(live, f"shop-{n}")
    await try_now(live)
    mail = await post.received()
    assert mail["Subject"] == f"{DIGEST_LINES + 2} updates since yesterday"
    text = mail.get_body(("plain",))
    assert text is not None
    assert "2 more updates aren't listed." in text.get_content()
    assert text.get_content().count("- shop-") == DIGEST_LINES


async def test_the_next_day_has_a_mail_of_its_own(live: Running, post: Post, clock: Clock) -> None:
    await want(live, MailTopic.STORES, MailPace.DAILY)
    await tell(live, "first")
    clock.advance(timedelta(days=1))
    await tell(live, "second")
    with capture_logs():
        await try_now(live)
        await post.received(2)
    assert [mail["Subject"] for mail in post.mails] == ["One update since yesterday"] * 2
