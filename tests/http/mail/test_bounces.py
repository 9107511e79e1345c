"""What the mail provider, the code host and the messaging service post: rules/service#provider-events."""

import base64
import hmac
from typing import Any

import anyio
import httpx
import orjson
import pytest

from tests.http.mail.post import Post
from tests.http.mail.test_sending import ended, invite
from tests.http.people import Clock, SignUp, made_operator, settings_of
from tests.timing import until
from tolsey.actors.bodies import Unreadable
from tolsey.http.mail.book import KINDS
from tolsey.http.mail.bounces import notice_of
from tolsey.service import Running
from tolsey.settings import Settings
from tolsey.storage.records.mail import BounceKind

MAIL_KEY, CODE_KEY, MESSAGE_KEY = b"mail key", b"code key", b"message key"
BOUNCE = {"type": "Permanent", "subType": "General", "message": "550 5.1.1 No such mailbox"}
BOUNCED = {"type": "email.bounced", "data": {"to": ["Bob <Bob@example.com>"], "bounce": BOUNCE}}


@pytest.fixture
def settings(database_url: str, redis_url: str, post: Post) -> Settings:
    return settings_of(
        database_url=database_url,
        redis_url=redis_url,
        mail_url=post.url,
        mail_from="no-reply@tolsey.example",
        mail_webhook_secret=f"rolled,whsec_{base64.b64encode(MAIL_KEY).decode()}",
        code_host_webhook_secret=CODE_KEY.decode(),
    )


def signed(body: bytes, clock: Clock, event_id: str) -> dict[str, str]:
    at = int(clock().timestamp())
    digest = hmac.digest(MAIL_KEY, b"%b.%d.%b" % (event_id.encode(), at, body), "sha256")
    return {
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": f"v1,{base64.b64encode(digest).decode()}",
    }


async def tell(
    browser: httpx.AsyncClient, clock: Clock, told: object, event_id: str = "msg_1"
) -> httpx.Response:
    body = orjson.dumps(told)
    headers = signed(body, clock, event_id)
    return await browser.post("/api/webhooks/mail", content=body, headers=headers)


async def settled(live: Running, state: str) -> None:
    await until(
        lambda: live.service.database.fetch("SELECT FROM provider_events WHERE state = $1", state)
    )


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (BOUNCED, (BounceKind.BOUNCED, ("bob@example.com",))),
        (
            {"type": "email.bounced", "data": {"to": ["a@b.example"], "bounce": {}}},
            (BounceKind.BOUNCED, ("a@b.example",)),
        ),
        (
            {
                "type": "email.complained",
                "data": {"to": ["a@b.example", "A@b.example", "c@d.example"]},
            },
            (BounceKind.COMPLAINED, ("a@b.example", "c@d.example")),
        ),
    ],
)
def test_a_bounce_or_a_complaint_says_of_which_addresses(told: Any, found: Any) -> None:
    notice = notice_of(told)
    assert notice is not None
    assert (notice.kind, notice.recipients) == found


def test_a_bounce_that_is_over_by_itself_marks_nothing() -> None:
    passing = {"to": ["bob@example.com"], "bounce": {"type": "Transient"}}
    assert notice_of({"type": "email.bounced", "data": passing}) is None


@pytest.mark.parametrize("to", [None, [], [7], "a@b.example", [""], ["a@b.example"] * 101, [" <>"]])
def test_a_bounce_of_nobody_or_of_everybody_is_unreadable(to: Any) -> None:
    several = (
        [f"{n}{one}" for n, one in enumerate(to)] if isinstance(to, list) and len(to) > 100 else to
    )
    with pytest.raises(Unreadable):
        notice_of({"type": "email.bounced", "data": {"to": several}})


async def test_an_address_that_bounced_is_written_to_no_more_until_an_operator_says_so(
    live: Running, post: Post, clock: Clock, sign_up: SignUp
) -> None:
    person = await sign_up()
    operator = (await made_operator(live.service.database, person)).browser
    first = await tell(operator, clock, BOUNCED)
    again = await tell(operator, clock, BOUNCED)
    answers = [(one.status_code, one.json()) for one in (first, again)]
    assert answers == [(200, {"status": "accepted"}), (200, {"status": "duplicate"})]
    await settled(live, "applied")
    (mark,) = (await operator.get("/api/admin/mail/bounces")).json()["items"]
    assert (mark["recipient"], mark["kind"]) == ("bob@example.com", "bounced")

    await invite(live)
    row = await ended(live, "refused")
    assert row["answer"] == "The address bounced: 550 5.1.1 No such mailbox"
    assert post.mails == []

    body = {"recipient": "bob@example.com", "reason": "They have a new mailbox."}
    assert (await operator.post("/api/admin/mail/bounces/clear", json=body)).status_code == 204
    assert (await operator.post("/api/admin/mail/bounces/clear", json=body)).status_code == 404
    assert (await operator.get("/api/admin/mail/bounces")).json()["items"] == []
    await live.service.database.execute("DELETE FROM outbound_mail")
    await invite(live)
    assert (await post.received())["To"] == "bob@example.com"


async def test_a_reader_who_complained_gets_only_what_must_be_said(
    live: Running, clock: Clock, sign_up: SignUp
) -> None:
    database = live.service.database
    browser = (await sign_up()).browser
    await database.execute(
        "INSERT INTO status_subscribers (email, confirmed_at) VALUES ('bob@example.com', now())"
    )
    complained = {"type": "email.complained", "data": {"to": ["bob@example.com"]}}
    assert (await tell(browser, clock, complained)).status_code == 200
    await settled(live, "applied")
    assert await database.fetch("SELECT FROM status_subscribers") == []
    await invite(live)
    assert await database.fetch("SELECT FROM outbound_mail") == []
    refused = await database.fetch("SELECT topic FROM mail_refusals ORDER BY topic")
    assert [one["topic"] for one in refused] == sorted(KINDS)


async def test_what_cannot_be_done_lies_with_the_dead_letters_and_the_rest_is_kept_and_shown(
    live: Running, clock: Clock, sign_up: SignUp
) -> None:
    operator = (await made_operator(live.service.database, await sign_up())).browser
    odd = {"type": "email.bounced", "data": {"to": "nobody"}}
    assert (await tell(operator, clock, odd)).status_code == 200
    clock.advance(clock().resolution)
    other = {"type": "email.delivered", "data": {"to": ["bob@example.com"]}}
    assert (await tell(operator, clock, other, "msg_2")).json() == {"status": "accepted"}
    await settled(live, "failed")
    with anyio.fail_after(60):
        while not (found := (await operator.get("/api/admin/dead-letters")).json()["items"]):
            await live.service.database.execute("UPDATE outbox SET due_at = now()")
            live.service.runtime.slots.wake_outbox()
            await anyio.sleep(0.02)
    assert "MarkAddresses" in str(found)

    path = "/api/admin/provider-events"
    assert (await listed(operator, path)) == [("msg_2", "kept"), ("msg_1", "failed")]
    assert (await listed(operator, f"{path}?state=failed")) == [("msg_1", "failed")]
    assert (await listed(operator, f"{path}?provider=code-host")) == []
    whole = (await operator.get(f"{path}/mail/msg_1")).json()
    assert (whole["payload"], whole["why"]) == (odd, "to: not a list of texts")
    assert (await operator.get(f"{path}/mail/msg_3")).status_code == 404
    row = await live.service.database.fetchrow("SELECT * FROM provider_events LIMIT 1")
    assert "nobody" not in str(row and dict(row))


async def listed(operator: httpx.AsyncClient, path: str) -> list[tuple[str, str]]:
    items = (await operator.get(path)).json()["items"]
    return [(one["eventId"], one["state"]) for one in items]


async def test_each_provider_is_refused_without_its_secret_or_a_proof(
    live: Running, clock: Clock, sign_up: SignUp
) -> None:
    browser = (await sign_up()).browser
    unset = await browser.post("/api/webhooks/messaging", content=b"{}")
    assert (unset.status_code, unset.json()["variable"]) == (503, "MESSAGING_WEBHOOK_SECRET")
    for path in ("mail", "code-host"):
        forged = await browser.post(f"/api/webhooks/{path}", content=b"{}")
        assert (forged.status_code, forged.json()["code"]) == (401, "invalid_signature")
    body = b'{"zen":"Keep it logically awesome."}'
    digest = hmac.digest(CODE_KEY, body, "sha256").hex()
    headers = {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": "ping"}
    for status in ("accepted", "duplicate"):
        taken = await browser.post("/api/webhooks/code-host", content=body, headers=headers)
        assert taken.json() == {"status": status}
        headers["X-GitHub-Delivery"] = "another"
    nameless = await browser.post(
        "/api/webhooks/code-host", content=body, headers={**headers, "X-GitHub-Event": ""}
    )
    assert (nameless.status_code, nameless.json()["code"]) == (422, "unreadable_event")
    late = signed(b"{}", clock, "msg_9")
    clock.advance(clock().resolution * 301_000_000)
    stale = await browser.post("/api/webhooks/mail", content=b"{}", headers=late)
    assert (stale.status_code, stale.json()["code"]) == (401, "stale_signature")
    assert (await browser.get("/api/webhooks/mail")).status_code == 405
