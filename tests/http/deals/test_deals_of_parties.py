"""Deals as their parties, members, strangers and operators see them, on the real actors and database."""

import hashlib
import itertools
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.http.deals.table import MARKET, PRICE, Table, signed
from tests.http.people import Clock, Person, add_member, made_operator
from tests.timing import until
from tolsey.actors.listing.deals.messages import DealDue, RequestSignature
from tolsey.actors.listing.messages import listing
from tolsey.actors.mail import TellPeople
from tolsey.runtime.errors import ShardUnavailable
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.selling import deals


async def test_a_buyer_is_let_in_by_the_seller_and_each_is_told_what_is_theirs_to_do(
    table: Table,
) -> None:
    made = await table.access(table.ben)
    assert made.status_code == 201, made.text
    asked = made.json()
    assert (asked["stage"], asked["turn"], asked["role"]) == ("INQUIRY", "seller", "buyer")
    assert asked["allowed"] == ["withdraw"]

    address = f'href="/deals/{asked["id"]}"'
    assert address in (await table.ann.browser.get("/")).text, "her home page tells her"
    assert address not in (await table.ben.browser.get("/")).text
    sees = await table.deal(table.ann, asked["id"])
    assert sees["allowed"] == ["access.approve", "access.decline"]
    let_in = await table.advance(table.ann, sees, "access.approve")
    assert let_in.status_code == 200, let_in.text
    assert let_in.json()["stage"] == "NDA_PENDING"
    assert let_in.json()["dueEvent"] == "timer.14d"
    mine = await table.ben.browser.get("/api/vendor/marketplace/deals")
    assert [(one["id"], one["role"]) for one in mine.json()["items"]] == [(asked["id"], "buyer")]


async def test_strangers_find_nothing_and_the_wrong_party_is_told_so(
    table: Table, database: Database
) -> None:
    asked = (await table.access(table.ben)).json()
    paths = ("", "/events", "/verify", "/offers")
    for path in paths:
        found = await table.eve.browser.get(f"{MARKET}/deals/{asked['id']}{path}")
        assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert (await table.advance(table.eve, asked, "access.approve")).status_code == 404

    wrong = await table.advance(table.ben, asked, "access.approve")
    assert (wrong.status_code, wrong.json()["code"]) == (403, "forbidden")
    assert wrong.json()["allowed"] == ["withdraw"]
    await add_member(database, table.ann.organization_id, table.eve.email, "member")
    assert (await table.deal(table.eve, asked["id"]))["role"] == "seller"
    reader = await table.advance(table.eve, asked, "access.approve")
    assert (reader.status_code, reader.json()["required"]) == (403, "admin")


async def test_a_stage_is_not_skipped_and_a_late_click_is_told_where_the_deal_is(
    table: Table,
) -> None:
    asked = (await table.access(table.ben)).json()
    early = await table.advance(table.ann, asked, "transfer.start")
    assert (early.status_code, early.json()["code"]) == (409, "invalid_transition")
    assert early.json()["allowed"] == ["access.approve", "access.decline"]
    await table.advance(table.ann, asked, "access.approve")
    late = await table.advance(table.ann, asked, "access.decline", reason="not yet")
    assert (late.status_code, late.json()["code"]) == (409, "invalid_transition")
    assert "NDA_PENDING" in late.json()["detail"]
    unsaid = await table.advance(table.ann, {**asked, "stage": "LOI_SIGNED"}, "bribe")
    assert unsaid.status_code == 422


async def test_a_repeat_with_its_key_asks_once(table: Table) -> None:
    first = await table.access(table.ben, **{"Idempotency-Key": "again-1"})
    second = await table.access(table.ben, **{"Idempotency-Key": "again-1"})
    third = await table.access(table.ben)

    assert first.json() == second.json()
    assert (third.status_code, third.json()["code"]) == (409, "deal_open")
    assert third.json()["deal"] == first.json()["id"]
    own = await table.access(table.ann)
    assert (own.status_code, own.json()["code"]) == (409, "own_listing")


@pytest.mark.parametrize("is_automatic", [True, False])
async def test_nothing_comes_between_letting_a_buyer_in_and_drawing_up_the_nda(
    table: Table, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, is_automatic: bool
) -> None:
    path = f"/api/sell/listings/{table.listing_id}"
    changed = await table.ann.browser.patch(path, json={"autoApproveAccess": is_automatic})
    assert changed.status_code == 200, changed.text
    ask = runtime.ask

    async def ask_or_fail(to: Any, message: Any, **given: Any) -> Any:
        if isinstance(message, RequestSignature):
            raise ShardUnavailable("planted")
        return await ask(to, message, **given)

    monkeypatch.setattr(runtime, "ask", ask_or_fail)
    answer = await table.access(table.ben, **{"Idempotency-Key": "let-in-1"})
    if not is_automatic:
        assert answer.json()["signatureId"] is None
        answer = await table.advance(table.ann, answer.json(), "access.approve")

    assert answer.is_success, answer.text
    let_in = answer.json()
    assert let_in["stage"] == "NDA_PENDING"
    wanted = await table.ben.browser.get(f"{MARKET}/signatures/{let_in['signatureId']}")
    assert (wanted.json()["documentType"], wanted.json()["status"]) == ("NDA", "PENDING")
    assert wanted.json()["hostedUrl"].endswith(f"/{let_in['signatureId']}/document")
    shown = await table.ben.browser.get(f"{MARKET}/signatures/{let_in['signatureId']}/document")
    assert "Corner shop" in shown.text
    for who in (table.ben, table.ann):
        given = await table.sign(who, let_in["signatureId"])
        assert given.status_code == 200, given.text
    assert (await table.deal(table.ben, let_in["id"]))["stage"] == "NDA_SIGNED"
    checked = await table.ben.browser.get(f"{MARKET}/deals/{let_in['id']}/verify")
    assert (checked.json()["valid"], checked.json()["events"]) == (True, 4)


@pytest.mark.parametrize("is_automatic", [True, False])
async def test_a_repeat_of_an_approval_whose_answer_was_lost_returns_its_outcome(
    table: Table, database: Database, is_automatic: bool
) -> None:
    path = f"/api/sell/listings/{table.listing_id}"
    await table.ann.browser.patch(path, json={"autoApproveAccess": is_automatic})
    key = {"Idempotency-Key": "let-in-1"}
    first = await table.access(table.ben, **(key if is_automatic else {}))
    asked = first.json()
    if not is_automatic:
        first = await table.advance(table.ann, asked, "access.approve", headers=key)
    # The commit was made; what answered it died before it kept the answer.
    await database.execute("UPDATE idempotency_keys SET answer = NULL, locked_until = NULL")
    if is_automatic:
        again = await table.access(table.ben, **key)
    else:
        again = await table.advance(table.ann, asked, "access.approve", headers=key)

    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.json()["signatureId"] is not None


async def test_of_two_buyers_accepted_at_once_one_has_the_business(table: Table) -> None:
    offered = []
    for buyer in (table.ben, table.cleo):
        deal = await signed(table, buyer)
        made = await buyer.browser.post(
            f"{MARKET}/deals/{deal['id']}/offers", json={"amount": PRICE}
        )
        assert made.status_code == 201, made.text
        assert made.json()["offer"]["allowed"] == ["withdraw"]
        offered.append(made.json()["offer"]["id"])
    answers: list[int] = []

    async def accept(offer_id: str) -> None:
        found = await table.ann.browser.post(f"{MARKET}/offers/{offer_id}/accept")
        answers.append(found.status_code)

    async with anyio.create_task_group() as group:
        for offer_id in offered:
            group.start_soon(accept, offer_id)

    assert sorted(answers) == [200, 409]
    seen = (await table.ann.browser.get("/api/vendor/marketplace/deals")).json()["items"]
    assert sorted(one["stage"] for one in seen) == ["NDA_SIGNED", "UNDER_OFFER"]
    sold = (await table.ann.browser.get(f"/api/sell/listings/{table.listing_id}")).json()
    assert sold["status"] == "UNDER_OFFER"


async def test_nobody_leaves_a_deal_by_deleting_the_store_or_the_account(
    table: Table, database: Database
) -> None:
    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}/offers"
    offer = (await table.ben.browser.post(path, json={"amount": PRICE})).json()["offer"]
    accepted = await table.ann.browser.post(f"{MARKET}/offers/{offer['id']}/accept")
    assert accepted.status_code == 200, accepted.text
    for refused in (
        await table.ann.browser.delete(f"/api/stores/{table.store_id}"),
        await table.ann.browser.delete("/api/account"),
        await table.ben.browser.delete("/api/account"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "open_deals")
    # The money can be asked back for seven days.
    await database.execute("UPDATE deal_threads SET stage = 'CLOSED', closed_at = now()")
    late = await table.ben.browser.delete("/api/account")
    assert (late.status_code, late.json()["code"]) == (409, "open_deals")
    await database.execute("UPDATE deal_threads SET closed_at = now() - interval '8 days'")
    gone = await table.ben.browser.delete("/api/account")
    assert gone.status_code == 202
    # What the seller may have to prove by stays, and whoever goes is told so.
    told = {one["reason"]: one["names"] for one in gone.json()["kept"]}
    evidence = told["Evidence of a deal between two parties, kept for seven years."]
    assert {"dealThreads", "dealOffers", "dealEvents"} <= set(evidence)


async def test_an_offer_is_countered_by_the_other_party_and_bounded_by_the_listing(
    table: Table,
) -> None:
    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}/offers"
    low = await table.ben.browser.post(path, json={"amount": {**PRICE, "amount": 100}})
    assert (low.status_code, low.json()["errors"][0]["field"]) == (422, "amount.amount")
    made = await table.ben.browser.post(path, json={"amount": {**PRICE, "amount": 1_500_000}})
    offer = made.json()["offer"]
    own = await table.ben.browser.post(f"{MARKET}/offers/{offer['id']}/accept")
    assert own.status_code == 403
    strange = await table.eve.browser.post(f"{MARKET}/offers/{offer['id']}/accept")
    assert strange.status_code == 404
    countered = await table.ann.browser.post(
        f"{MARKET}/offers/{offer['id']}/counter",
        json={"amount": {**PRICE, "amount": 1_800_000}, "message": "Meet me here."},
    )
    assert countered.status_code == 201, countered.text
    child = countered.json()["offer"]
    assert (child["parentId"], child["side"]) == (offer["id"], "seller")
    agreed = await table.ben.browser.post(f"{MARKET}/offers/{child['id']}/accept")
    assert agreed.json()["price"] == {**PRICE, "amount": 1_800_000}
    listed = (await table.ann.browser.get(path)).json()["items"]
    assert [one["status"] for one in listed] == ["ACCEPTED", "COUNTERED"]


@pytest.mark.changes_schema
async def test_both_parties_read_a_ledger_that_anyone_can_check_and_a_changed_line_is_named(
    table: Table, database: Database
) -> None:
    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}"
    lines = (await table.ann.browser.get(f"{path}/events")).json()["items"]
    assert lines == (await table.ben.browser.get(f"{path}/events")).json()["items"]
    assert [one["event"] for one in lines] == [
        "access.request",
        "access.approve",
        "signature.requested",
        "nda.signed_by_all",
    ]
    for line in lines:
        assert hashlib.sha256(line["body"].encode()).hexdigest() == line["hash"]
    checked = (await table.ben.browser.get(f"{path}/verify")).json()
    assert (checked["valid"], checked["firstBreak"], checked["head"]) == (
        True,
        None,
        lines[-1]["hash"],
    )

    with pytest.raises(Exception, match="only added"):
        await database.execute("UPDATE deal_events SET at = now()")
    await database.execute("ALTER TABLE deal_events DISABLE TRIGGER deal_events_stay")
    await database.execute(
        "UPDATE deal_events SET body = replace(body, 'access.approve', 'access.decline') WHERE seq = 2"
    )
    forged = (await table.ben.browser.get(f"{path}/verify")).json()
    assert (forged["valid"], forged["firstBreak"]) == (False, 2)


async def test_what_is_kept_wakes_as_it_was(table: Table, database: Database) -> None:
    deal = await signed(table, table.ben)
    await table.ben.browser.post(f"{MARKET}/deals/{deal['id']}/offers", json={"amount": PRICE})
    before = await table.deal(table.ann, deal["id"])
    ((kept, offer, _),) = (await deals.load(database, [table.listing_id]))[table.listing_id]

    assert (kept.id, kept.seq, kept.hash) == (deal["id"], before["events"], before["ledgerHash"])
    assert offer is not None
    assert offer.id == before["offer"]["id"]
    due = await database.fetch(
        "SELECT key FROM outbox WHERE due_at > now() AND key LIKE '%/%/%'"
        " OR due_at > now() AND (key LIKE 'offer_%/%' OR key LIKE 'sig_%/%') ORDER BY key"
    )
    assert [row["key"].split("_")[0] for row in due] == ["deal", "offer", "sig"]


async def test_time_ends_what_nobody_answered(
    table: Table, runtime: Runtime, clock: Clock, database: Database, told: list[TellPeople]
) -> None:
    asked = (await table.access(table.ben)).json()
    ends_at = clock.now + timedelta(days=14)
    for at, stage in ((ends_at - timedelta(seconds=1), "INQUIRY"), (ends_at, "EXPIRED")):
        due = DealDue(deal_id=asked["id"], event="timer.14d", at=at)
        await runtime.ask(listing(table.listing_id), due)
        kept = await deals.find(database, asked["id"])
        assert kept is not None
        assert kept.stage == stage
    await until(lambda: len(told) >= 3)
    said = {(call.organization_id, call.facts["event"]) for call in told}
    assert said == {
        (table.ann.organization_id, "access.request"),
        (table.ann.organization_id, "timer.14d"),
        (table.ben.organization_id, "timer.14d"),
    }


async def test_an_operator_ends_a_deal_with_a_reason_and_a_withdrawn_listing_ends_its_inquiries(
    table: Table, database: Database
) -> None:
    asked = (await table.access(table.ben)).json()
    operator = await made_operator(database, table.eve)
    assert (await table.deal(operator, asked["id"]))["role"] == "operator"
    refused = await table.advance(operator, asked, "admin.cancel", reason="fraud")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    gone = await table.ann.browser.post(f"/api/sell/listings/{table.listing_id}/withdraw")
    assert gone.json()["status"] == "WITHDRAWN"
    assert (await table.deal(table.ben, asked["id"]))["stage"] == "CLOSED_LOST"


async def test_a_document_is_signed_as_it_was_shown_and_the_last_signature_moves_the_deal(
    table: Table,
) -> None:
    asked = (await table.access(table.ben)).json()
    let_in = (await table.advance(table.ann, asked, "access.approve")).json()
    path = f"{MARKET}/signatures/{let_in['signatureId']}"
    assert (await table.eve.browser.get(path)).status_code == 404
    assert (await table.eve.browser.get(f"{path}/document")).status_code == 404

    shown = await table.ben.browser.get(f"{path}/document")
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert table.listing_id in shown.text
    other = await table.sign(table.ben, let_in["signatureId"], documentSha256="0" * 64)
    assert (other.status_code, other.json()["code"]) == (409, "document_changed")
    unconsented = await table.sign(table.ben, let_in["signatureId"], consent=False)
    assert unconsented.status_code == 422

    first = await table.sign(table.ben, let_in["signatureId"])
    assert (first.json()["status"], first.json()["stage"]) == ("VIEWED", "NDA_PENDING")
    again = await table.sign(table.ben, let_in["signatureId"])
    assert again.json()["auditHash"] == first.json()["auditHash"]
    last = await table.sign(table.ann, let_in["signatureId"])
    assert (last.json()["status"], last.json()["stage"]) == ("SIGNED", "NDA_SIGNED")
    deal = await table.deal(table.ben, asked["id"])
    assert deal["ndaSignedAt"] is not None

    checked = (await table.ben.browser.get(f"{path}/verify")).json()
    assert (checked["valid"], checked["inLedger"], checked["firstBreak"]) == (True, True, None)
    assert [one["name"] for one in checked["signers"]] == ["B…", "A…"]
    assert checked["auditHash"] == last.json()["auditHash"]
    # `sha256sum` alone follows the chain.
    before = checked["genesis"]
    for event in checked["events"]:
        assert before in event["body"]
        before = hashlib.sha256(event["body"].encode()).hexdigest()
        assert before == event["hash"]


async def test_a_declined_document_leaves_the_deal_where_it_is_and_another_can_be_asked_for(
    table: Table,
) -> None:
    asked = (await table.access(table.ben)).json()
    first = (await table.advance(table.ann, asked, "access.approve")).json()["signatureId"]
    wants = f"/api/vendor/marketplace/deals/{asked['id']}/request-signature"
    open_one = await table.ben.browser.post(wants, json={"documentType": "NDA"})
    assert (open_one.status_code, open_one.json()["code"]) == (409, "signature_open")
    no = await table.ben.browser.post(
        f"{MARKET}/signatures/{first}/decline", json={"reason": "Too long."}
    )
    assert (no.json()["status"], no.json()["stage"]) == ("DECLINED", "NDA_PENDING")
    assert (await table.sign(table.ann, first)).json()["code"] == "invalid_transition"
    early = await table.ann.browser.post(wants, json={"documentType": "APA"})
    assert (early.status_code, early.json()["code"]) == (409, "invalid_transition")
    outside = await table.ann.browser.post(
        wants, json={"documentType": "NDA", "provider": "EXTERNAL_A"}
    )
    assert (outside.status_code, outside.json()["hostedUrl"]) == (201, None)
    assert (await table.sign(table.ben, outside.json()["id"])).json()["code"] == "conflict"


async def test_a_document_of_another_stage_is_refused_with_the_moves_of_the_caller(
    table: Table,
) -> None:
    asked = (await table.access(table.ben)).json()
    wants = f"/api/vendor/marketplace/deals/{asked['id']}/request-signature"

    async def is_refused(*kinds: str) -> None:
        for who, kind in itertools.product((table.ann, table.ben), kinds):
            answer = await who.browser.post(wants, json={"documentType": kind})
            assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition"), kind
            assert answer.json()["allowed"] == (await table.deal(who, asked["id"]))["allowed"]

    await is_refused("NDA", "LOI", "APA")
    let_in = (await table.advance(table.ann, asked, "access.approve")).json()
    await is_refused("LOI", "APA")
    for who in (table.ann, table.ben):
        await table.sign(who, let_in["signatureId"])
    await is_refused("NDA", "LOI", "APA")
    made = await table.ben.browser.post(
        f"{MARKET}/deals/{asked['id']}/offers", json={"amount": PRICE}
    )
    await is_refused("LOI")
    await table.ann.browser.post(f"{MARKET}/offers/{made.json()['offer']['id']}/accept")
    await is_refused("NDA")
    # The machine has this move, and a guard of it names what is missing.
    early = await table.ann.browser.post(wants, json={"documentType": "APA"})
    assert (early.status_code, early.json()["code"]) == (409, "guard_failed")
    assert early.json()["allowed"] == (await table.deal(table.ann, asked["id"]))["allowed"]
    await table.advance(table.ben, await table.deal(table.ben, asked["id"]), "withdraw")
    await is_refused("NDA", "LOI", "APA")


async def test_a_business_is_sold_from_the_first_question_to_the_closing(
    table: Table, database: Database
) -> None:
    deal = await signed(table, table.ben)
    other = await signed(table, table.cleo)
    id = deal["id"]
    wants = f"/api/vendor/marketplace/deals/{id}/request-signature"
    made = await table.ben.browser.post(f"{MARKET}/deals/{id}/offers", json={"amount": PRICE})
    await table.ann.browser.post(f"{MARKET}/offers/{made.json()['offer']['id']}/accept")

    async def moved(who: Person, event: str, **given: Any) -> dict[str, Any]:
        answer = await table.advance(who, await table.deal(who, id), event, **given)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def signed_by_both(kind: str) -> None:
        asked = await table.ann.browser.post(wants, json={"documentType": kind})
        assert asked.status_code == 201, asked.text
        for who in (table.ann, table.ben):
            given = await table.sign(who, asked.json()["id"])
            assert given.status_code == 200, given.text

    await signed_by_both("LOI")
    waits = await table.deal(table.cleo, other["id"])
    assert (waits["paused"], waits["allowed"]) == (True, ["withdraw"])
    opened = await moved(table.ann, "diligence.open")
    early = await table.ann.browser.post(wants, json={"documentType": "APA"})
    assert (early.status_code, early.json()["code"]) == (409, "guard_failed")
    for item in opened["diligence"]:
        await moved(table.ben, "diligence.resolve", item=item["id"])
    await signed_by_both("APA")
    wrong = await table.advance(
        table.ann,
        await table.deal(table.ann, id),
        "escrow.open",
        escrowId="esc_1",
        amount={**PRICE, "amount": 1},
    )
    assert (wrong.status_code, wrong.json()["code"]) == (409, "guard_failed")
    await moved(table.ann, "escrow.open", escrowId="esc_1", amount=PRICE)
    await moved(table.ben, "funding.confirm")
    await moved(table.ann, "escrow.funded")
    handing = await moved(table.ann, "transfer.start")
    for item in handing["transferItems"]:
        await moved(table.ann, "transfer.deliver", item=item["id"])
        path = f"{MARKET}/deals/{id}/transfer-items/{item['id']}"
        assert (await table.ben.browser.post(path, json={"verdict": "accepted"})).status_code == 200
    closed = await moved(table.ann, "deal.close")

    assert (closed["stage"], closed["closedAt"] is not None) == ("CLOSED", True)
    sold = (await table.ann.browser.get(f"/api/sell/listings/{table.listing_id}")).json()
    assert sold["status"] == "SOLD"
    assert (await table.deal(table.cleo, other["id"]))["stage"] == "CLOSED_LOST"
    checked = (await table.ben.browser.get(f"{MARKET}/deals/{id}/verify")).json()
    assert (checked["valid"], checked["follows"]) == (True, True)
    rows = await database.fetch(
        "SELECT organization_id FROM audit_log WHERE event = 'marketplace.transaction'"
    )
    assert {row["organization_id"] for row in rows} == {
        table.ann.organization_id,
        table.ben.organization_id,
    }
