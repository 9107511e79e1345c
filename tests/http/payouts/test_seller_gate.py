"""A seller can be paid before the first listing is shown (rules/payments#payout-accounts)."""

from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.http.listings.seller_side import Seller, listed
from tests.http.payouts.conftest import ACCOUNT, Bank, begun, read
from tests.http.people import Clock, Person, SignUp, add_member, made_operator
from tests.payees import verified
from tests.sandbox.payments.stage import STRIPE
from tolsey.storage.money import payouts

pytestmark = STRIPE
REQUIRED = (403, "payout_account_required")


@pytest.fixture
async def seller(ann: Person) -> Seller:
    return await listed(ann)


async def refused(seller: Seller, command: str) -> tuple[int, Any]:
    answer = await seller.post(command)
    return answer.status_code, answer.json().get("code")


async def pay(bank: Bank, person: Person) -> None:
    """Give a person a verified account."""
    said = verified(f"acct_{person.user_id}")
    await payouts.opened(
        bank.live.service.database, person.user_id, said, bank.live.service.clock()
    )


async def test_the_first_listing_waits_for_an_account_and_says_where_to_begin(
    bank: Bank, ann: Person, seller: Seller
) -> None:
    for command in ("submit", "publish"):
        answer = await seller.post(command)
        assert (answer.status_code, answer.json()["code"]) == REQUIRED
        assert answer.json()["begin"] == f"http://127.0.0.1:8000{ACCOUNT}"
        assert answer.json()["missing"] == ["payout_account"]
    assert (await seller.read())["status"] == "DRAFT"

    await bank.browser.post((await begun(ann))["url"])
    assert (await seller.post("publish")).json()["status"] == "ACTIVE"


async def test_who_is_back_from_the_form_before_the_event_may_publish(
    bank: Bank, ann: Person, seller: Seller
) -> None:
    bank.processor.webhooks.pause()
    await bank.browser.post((await begun(ann))["url"])
    assert (await seller.post("publish")).json()["status"] == "ACTIVE"


async def test_an_account_that_is_only_begun_or_restricted_does_not_do(
    bank: Bank, ann: Person, seller: Seller
) -> None:
    account = (await begun(ann))["account"]["id"]
    refusal = (await seller.post("publish")).json()
    assert refusal["code"] == "payout_account_required"
    query = {"organizationId": ann.organization_id}
    stands = (await ann.browser.get("/api/sell/account", params=query)).json()
    assert (stands["required"], stands["ready"], stands["state"]) == (True, False, "onboarding")
    assert stands["missing"] == refusal["missing"] == (await read(ann))["currentlyDue"]
    assert stands["missing"]
    bank.processor.onboard(account, disabled_reason="rejected.fraud")
    await bank.told()
    assert await refused(seller, "publish") == REQUIRED


async def test_it_must_be_the_account_of_one_who_runs_the_organization(
    bank: Bank, ann: Person, seller: Seller, sign_up: SignUp
) -> None:
    stranger, member, admin = [
        await sign_up(f"{name}@example.com") for name in ("stranger", "member", "admin")
    ]
    await pay(bank, stranger)
    await pay(bank, member)
    await add_member(bank.live.service.database, ann.organization_id, member.email, "member")
    assert await refused(seller, "publish") == REQUIRED
    await pay(bank, admin)
    await add_member(bank.live.service.database, ann.organization_id, admin.email, "admin")
    assert (await seller.post("publish")).status_code == 200


async def test_an_operator_does_not_show_a_listing_past_the_gate(
    bank: Bank, seller: Seller, sign_up: SignUp
) -> None:
    database = bank.live.service.database
    operator = await made_operator(database, await sign_up("operator@example.com"))
    answer = await operator.browser.post(f"{seller.path}/publish")
    assert (answer.status_code, answer.json()["code"]) == REQUIRED


async def test_an_organization_that_has_shown_a_listing_goes_on(
    bank: Bank, ann: Person, seller: Seller, clock: Clock
) -> None:
    await pay(bank, ann)
    assert (await seller.post("publish")).status_code == 200
    clock.advance(timedelta(days=1))
    await bank.live.service.database.execute("DELETE FROM payout_accounts")
    assert (await seller.post("pause")).status_code == 200
    assert (await seller.post("publish")).status_code == 200
    second = await listed(ann, title="Another shop")
    assert (await second.post("publish")).status_code == 200


async def test_an_operator_writes_payouts_down_and_two_at_once_do_not_pass_the_limit_of_a_year(
    bank: Bank, ann: Person, sign_up: SignUp
) -> None:
    operator = await made_operator(bank.live.service.database, await sign_up("op@example.com"))
    said = {"kind": "affiliate", "payee": ann.user_id, "reason": "June"}

    async def paid(cents: int, **more: Any) -> Any:
        amount = {"amount": cents, "currency": "USD"}
        body = {**said, "amount": amount, **more}
        return await operator.browser.post("/api/admin/payouts", json=body)

    unknown = await paid(100, payee="usr_nobody")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    early = await paid(100)
    assert (early.status_code, early.json()["code"]) == REQUIRED
    assert (await ann.browser.post("/api/admin/payouts", json=said)).status_code == 403
    await pay(bank, ann)
    answers: list[int] = []

    async def at_once() -> None:
        answers.append((await paid(400_00)).status_code)

    async with anyio.create_task_group() as group:
        group.start_soon(at_once)
        group.start_soon(at_once)
    assert sorted(answers) == [201, 409]
    refused = await paid(400_00)
    assert (refused.json()["code"], refused.json()["missing"]) == (
        "tax_form_required",
        ["tax_form"],
    )
    filed = await paid(400_00, taxForm="W-9, folder 7")
    assert filed.json()["paidThisYear"] == {"amount": 800_00, "currency": "USD"}
    assert (await paid(1)).status_code == 201
    bounty = await paid(500_00, kind="bounty")
    assert bounty.json()["paidThisYear"]["amount"] == 500_00
    rows = await bank.live.service.database.fetch(
        "SELECT event FROM audit_log WHERE subject = $1 AND event IN ('payout', 'bounty.paid')"
        " ORDER BY id",
        ann.user_id,
    )
    assert [row["event"] for row in rows] == ["payout", "payout", "payout", "bounty.paid"]
