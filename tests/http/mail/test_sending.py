"""Mails over a real socket: what the server takes, refuses, puts off and forgets to answer."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.http.mail.post import Post
from tests.http.people import Browser, SignUp, made_operator
from tests.timing import until
from tolsey.actors.mail import MailEvent
from tolsey.service import Running
from tolsey.storage.database import Row

LINK = "http://127.0.0.1:8000/invitations/invite_secret-of-this-test"


async def invite(live: Running, recipient: str = "bob@example.com", **facts: str) -> None:
    office, database = live.service.mail, live.service.database
    async with database.transaction() as tx:
        await office.write(
            tx,
            MailEvent.INVITED,
            recipient,
            about="inv_1",
            facts={"inviter": "ann@example.com", "organization": "Ann's", "role": "admin", **facts},
            link=LINK,
        )


async def ended(live: Running, state: str) -> Row:
    """Wait until the only mail stands so."""

    async def find() -> Row | None:
        row = await live.service.database.fetchrow("SELECT * FROM outbound_mail")
        return row if row is not None and row["state"] == state else None

    return await until(find)


async def tried(live: Running, attempts: int) -> Row:
    """Wait until the only mail has had so many tries, and is to have another."""

    async def find() -> Row | None:
        return await live.service.database.fetchrow(
            "SELECT m.* FROM outbound_mail m, outbox o"
            " WHERE m.attempts = $1 AND o.attempts = $1 AND o.due_at > now()",
            attempts,
        )

    return await until(find)


async def try_now(live: Running) -> None:
    """Let the wait be over."""
    await live.service.database.execute("UPDATE outbox SET due_at = now()")
    live.service.runtime.slots.wake_outbox()


async def test_a_mail_is_sent_as_text_and_html_and_its_content_goes(
    live: Running, post: Post
) -> None:
    await invite(live)
    mail = await post.received()
    row = await ended(live, "sent")
    assert mail["To"] == "bob@example.com"
    assert mail["From"] == "Tölsey <no-reply@tolsey.example>"
    assert mail["Message-ID"] == f"<{row['id']}@127.0.0.1>"
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    assert LINK in text.get_content()
    assert LINK in html.get_content()
    assert row["sealed_content"] is None
    assert row["answer"] == "Taken"


async def test_a_refused_mail_is_noted_with_the_answer_and_not_tried_again(
    live: Running, post: Post
) -> None:
    post.answers = ["550 5.1.1 No such mailbox"]
    await invite(live)
    row = await ended(live, "refused")
    assert row["answer"] == "550 5.1.1 No such mailbox"
    assert (row["attempts"], row["sealed_content"]) == (1, None)

    async def is_done() -> bool:
        return not await live.service.database.fetchrow("SELECT 1 AS n FROM outbox")

    await until(is_done)
    assert post.mails == []


async def test_a_mail_that_is_put_off_is_tried_again(live: Running, post: Post) -> None:
    post.answers = ["451 4.7.1 Greylisted, come back later"]
    await invite(live)
    row = await tried(live, 1)
    assert row["state"] == "waiting"
    assert row["answer"] == "451 4.7.1 Greylisted, come back later"
    assert row["next_try_at"] > row["created_at"]
    await try_now(live)
    assert (await ended(live, "sent"))["attempts"] == 2


async def test_a_mail_that_was_not_answered_is_sent_again_under_its_message_id(
    live: Running, post: Post
) -> None:
    post.answers = ["drop"]
    await invite(live)
    await tried(live, 1)
    await try_now(live)
    second = await post.received(2)
    assert post.mails[0]["Message-ID"] == second["Message-ID"]
    assert (await ended(live, "sent"))["attempts"] == 2


async def test_a_mail_that_no_one_takes_is_given_up_after_days(live: Running, post: Post) -> None:
    post.answers = ["451 Later"] * 10
    await invite(live)
    for attempts in range(1, 10):
        await tried(live, attempts)
        await try_now(live)
    row = await ended(live, "given_up")
    assert (row["attempts"], row["answer"]) == (10, "451 Later")


@pytest.mark.parametrize("name", ["Ann\r\nBcc: victim@example.com", "Ann\n\n<h1>x", "Zoë 🐈\u2028"])
async def test_no_name_writes_a_header_or_markup(live: Running, post: Post, name: str) -> None:
    await invite(live, inviter=name, organization="<b>Søren</b>\r\nX-Evil: 1")
    mail = await post.received()
    assert post.recipients == ["bob@example.com"]
    assert mail["Bcc"] is None
    assert mail["X-Evil"] is None
    subject = mail["Subject"]
    assert subject.startswith(" ".join(name.split()))
    assert subject.endswith("<b>Søren</b> X-Evil: 1")
    html = mail.get_body(("html",))
    assert html is not None
    assert "<b>" not in html.get_content()
    assert "&lt;b&gt;Søren&lt;/b&gt;" in html.get_content()


@pytest.mark.parametrize(
    ("address", "envelope"),
    [
        ("zoë@example.com", "zoë@example.com"),
        ("bob@bücher.example", "bob@xn--bcher-kva.example"),
    ],
)
async def test_addresses_of_any_script_are_written_to(
    live: Running, post: Post, address: str, envelope: str
) -> None:
    await invite(live, address)
    await post.received()
    assert post.recipients == [envelope]
    await ended(live, "sent")


async def test_one_click_ends_the_mails_of_a_topic(
    live: Running, post: Post, browser: Browser
) -> None:
    await invite(live)
    mail = await post.received()
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    address = mail["List-Unsubscribe"].strip("<>")
    reader = browser()
    asked = await reader.get(address)
    assert asked.status_code == 200
    async with live.service.database.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM mail_refusals") == 0
    # A mail service asks without an origin and without a cookie (RFC 8058, section 3.1).
    del reader.headers["Origin"]
    done = await reader.post(address, data={"List-Unsubscribe": "One-Click"})
    assert done.status_code == 200, done.text
    await live.service.database.execute("DELETE FROM outbound_mail")
    await invite(live)
    assert await live.service.database.fetchrow("SELECT 1 AS n FROM outbound_mail") is None
    assert (await reader.post(f"{address[:-3]}abc")).status_code == 404


async def test_mails_of_security_have_no_way_out(live: Running, post: Post) -> None:
    async with live.service.database.transaction() as tx:
        await live.service.mail.write(
            tx, MailEvent.PASSWORD_FORGOTTEN, "bob@example.com", about="r", facts={}, link=LINK
        )
    mail = await post.received()
    assert mail["List-Unsubscribe"] is None
    assert "unsubscribe" not in str(mail).lower()


async def test_what_is_told_twice_is_written_once(live: Running, post: Post) -> None:
    await invite(live)
    await invite(live)
    await ended(live, "sent")
    assert len(post.mails) == 1


async def test_operators_see_mails_and_not_what_they_say(
    live: Running, post: Post, sign_up: SignUp
) -> None:
    post.answers = ["550 No"]
    with capture_logs() as logs:
        await invite(live)
        await ended(live, "refused")
    assert "secret-of-this-test" not in str(logs)
    ann = await sign_up()
    path = "/api/admin/mail?state=refused&recipient=Bob@example.com"
    assert (await ann.browser.get(path)).status_code == 403
    operator = await made_operator(live.service.database, ann)
    answer = await operator.browser.get(path)
    (item,) = answer.json()["items"]
    assert (item["recipient"], item["answer"]) == ("bob@example.com", "550 No")
    assert "secret-of-this-test" not in answer.text
    assert (await ann.browser.get("/api/admin/mail?state=sent")).json()["items"] == []
    kept: Any = await live.service.database.fetch("SELECT row_to_json(t)::text AS t FROM outbox t")
    assert "secret-of-this-test" not in str(kept)
