"""A seller lists a business, and buyers see it when they should."""

from typing import Any

import pytest

from tests.http.listings.seller_side import CREDENTIALS, PUBLIC, SELL, VERIFICATION, Seller, listed
from tests.http.people import Browser, SignUp
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.people import administrators


async def test_a_listing_is_made_edited_and_published(seller: Seller) -> None:
    assert seller.made["status"] == "DRAFT"
    assert set(seller.made["verification"]) == VERIFICATION
    assert seller.made["verification"]["state"] == "none"
    assert (await seller.public()).status_code == 404

    changes = {"teaser": "Cosy", "minOffer": {"amount": 4_000_000, "currency": "USD"}}
    edited = await seller.browser.patch(seller.path, json=changes)
    assert edited.json()["teaser"] == "Cosy"
    assert edited.json()["askingPrice"] == {"amount": 5_000_000, "currency": "USD"}

    assert (await seller.post("publish")).json()["status"] == "ACTIVE"
    shown = (await seller.public()).json()
    assert shown["title"] == "Corner <shop> & co"
    assert "minOffer" not in shown
    assert shown["verification"]["revenue30d"] is None
    items = (await seller.browser.get(PUBLIC)).json()["items"]
    assert [item["slug"] for item in items] == [seller.made["slug"]]

    again = await seller.post("publish")
    assert (again.status_code, again.json()["code"]) == (409, "invalid_transition")
    assert again.json()["allowed"] == ["pause", "withdraw"]
    assert (await seller.post("pause")).json()["status"] == "PAUSED"
    assert (await seller.post("publish")).json()["status"] == "ACTIVE"
    assert (await seller.post("withdraw")).json()["status"] == "WITHDRAWN"
    assert (await seller.public()).status_code == 404
    assert (await seller.browser.delete(seller.path)).status_code == 204
    assert (await seller.browser.get(seller.path)).status_code == 404


async def test_the_same_key_makes_one_listing(sign_up: SignUp) -> None:
    ann = await sign_up("ann@example.com")
    body = {"organizationId": ann.organization_id, "title": "Once"}
    answers = [
        await ann.browser.post(SELL, json=body, headers={"Idempotency-Key": "k1"}) for _ in range(2)
    ]

    assert answers[0].json() == answers[1].json()
    assert len((await ann.browser.get(SELL)).json()["items"]) == 1


async def test_lists_come_in_pages(sign_up: SignUp) -> None:
    ann = await sign_up("ann@example.com")
    made = [(await listed(ann, title=f"No {n}")).made["id"] for n in range(3)]
    first = (await ann.browser.get(SELL, params={"limit": 2})).json()
    rest = (await ann.browser.get(SELL, params={"limit": 2, "cursor": first["nextCursor"]})).json()

    assert [item["id"] for item in first["items"] + rest["items"]] == made[::-1]
    assert rest["nextCursor"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"title": ""},
        {"askingPrice": {"amount": 0, "currency": "USD"}},
        {"askingPrice": {"amount": 10**16, "currency": "USD"}},
        {"askingPrice": {"amount": 5, "currency": "dollars"}},
        {"domain": "not a domain"},
        {"country": "Germany"},
        {"includedAssets": ["x"] * 51},
        {"surprise": True},
    ],
)
async def test_a_misshapen_listing_is_refused(seller: Seller, body: dict[str, Any]) -> None:
    refused = await seller.browser.patch(seller.path, json=body)

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


async def test_strangers_see_neither_the_listing_nor_that_it_is_there(
    seller: Seller, sign_up: SignUp, browser: Browser
) -> None:
    eve = (await sign_up("eve@example.com")).browser
    nothing = (await eve.get(f"{SELL}/listing_none")).json()["detail"]
    for who, status in ((browser(), 401), (eve, 404)):
        for answer in (
            await who.get(seller.path),
            await who.patch(seller.path, json={"title": "Mine"}),
            await who.delete(seller.path),
            await who.post(f"{seller.path}/publish"),
            await who.post(f"{seller.path}/verify/commerce", json=CREDENTIALS),
            await who.post(f"{seller.path}/verify/refresh"),
            await who.delete(f"{seller.path}/verify"),
        ):
            assert answer.status_code == status, answer.text
            assert status == 401 or answer.json()["detail"] == nothing


async def test_an_anonymous_business_does_not_say_where_it_is(sign_up: SignUp) -> None:
    hidden = await listed(await sign_up("ann@example.com"), anonymous=True)
    await hidden.post("publish")
    shown = (await hidden.public()).json()

    assert shown["domain"] is None
    assert "corner" not in shown["slug"]


class TestUnderReview:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"listing_review": "manual"})

    async def test_an_administrator_stands_between_a_draft_and_the_public(
        self, seller: Seller, browser: Browser, database: Database
    ) -> None:
        assert (await seller.post("publish")).status_code == 409
        assert (await seller.post("submit")).json()["status"] == "PENDING_REVIEW"
        waiting = await seller.post("publish")
        assert (waiting.status_code, waiting.json()["code"]) == (403, "review_required")

        boss = browser()
        pair = {"email": "boss@example.com", "password": "correct horse battery"}
        await administrators.create_administrator(database, pair["email"], pair["password"])
        assert (await boss.post("/api/auth/login", json=pair)).status_code == 200
        approved = await boss.post(f"{seller.path}/publish")
        assert approved.json()["status"] == "ACTIVE"

        odd = f"/api/admin/listings/{seller.made['id']}/suspend"
        assert (await seller.browser.post(odd, json={"reason": "x"})).status_code == 403
        suspended = await boss.post(odd, json={"reason": "Looks odd"})
        assert suspended.json()["status"] == "SUSPENDED"
        assert (await seller.public()).status_code == 404
        events = await database.fetch(
            "SELECT event FROM audit_log WHERE subject = $1", seller.made["id"]
        )
        assert {row["event"] for row in events} == {"listing.approve", "listing.suspend"}
