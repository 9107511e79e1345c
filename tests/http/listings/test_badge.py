"""Buyers see what nobody could have typed in, and only while it holds."""

from datetime import timedelta

import pytest
from cryptography.exceptions import InvalidSignature

from tests.http.account_books import Account
from tests.http.listings.seller_side import DAY, PUBLIC, Seller, check
from tests.http.people import Clock


async def test_a_signed_proof_is_checked_with_the_public_keys_alone(verified: Seller) -> None:
    proof = (await verified.public("/verification")).json()
    keys = (await verified.browser.get("/.well-known/verification-keys.json")).json()

    check(proof, keys)
    for forged in (
        {**proof, "revenue30d": proof["revenue30d"] + 1},
        {**proof, "signature": {**proof["signature"], "listing": "another-shop"}},
        {**proof, "signature": {**proof["signature"], "signedAt": "2031-01-01T00:00:00.000Z"}},
    ):
        with pytest.raises(InvalidSignature):
            check(forged, keys)


async def test_the_badge_goes_grey_and_then_away_though_nothing_runs(
    verified: Seller, clock: Clock
) -> None:
    synced_on = clock.now.date().isoformat()
    clock.advance(timedelta(minutes=12))
    assert "synced 12 min ago" in (await verified.public("/badge.svg")).text

    clock.advance(DAY)
    grey = await verified.public("/badge.svg?theme=dark&size=l")
    assert f"last verified {synced_on}" in grey.text
    proof = (await verified.public("/verification")).json()
    assert (proof["state"], proof["revenue30d"]) == ("stale", 14_345)

    clock.advance(6 * DAY)
    assert (await verified.public("/badge.svg")).status_code == 404
    proof = (await verified.public("/verification")).json()
    assert (proof["state"], proof["revenue30d"], proof["syncedAt"]) == ("failed", None, None)
    assert "Not verified" in (await verified.public("/embed")).text
    assert len((await verified.public("/history")).json()["items"]) == 1


async def test_the_embedded_page_is_for_any_site_and_loads_nothing(verified: Seller) -> None:
    page = await verified.public("/embed")
    policy = page.headers["content-security-policy"]

    assert "frame-ancestors *" in policy
    assert "default-src 'none'" in policy
    assert page.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "<script" not in page.text
    assert "Corner &lt;shop&gt; &amp; co" in page.text


async def test_a_badge_that_is_known_is_not_sent_again(verified: Seller) -> None:
    first = await verified.public("/badge.svg")
    path = f"{PUBLIC}/{verified.made['slug']}/badge.svg"
    again = await verified.browser.get(path, headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")


async def test_a_claimed_domain_that_is_not_the_shops_is_flagged_at_once(verified: Seller) -> None:
    await verified.browser.patch(verified.path, json={"domain": "famous.example"})

    assert (await verified.public("/verification")).json()["flags"] == ["domain_mismatch"]
    badge = (await verified.public("/badge.svg")).text
    assert "Revenue verified, domain not verified" in badge


async def test_a_domain_that_is_not_the_sellers_hides_no_review(
    paid: Seller, account: Account, clock: Clock
) -> None:
    clock.advance(timedelta(minutes=1))
    account.pay("cus_a", 90_000, amount_refunded=60_000)
    elsewhere = {"url": "https://elsewhere.example"}
    account.answer_next("/v1/account", account.own(business_profile=elsewhere))
    await paid.post("verify/refresh")
    await paid.synced()

    flags = (await paid.public("/verification")).json()["flags"]
    assert flags == ["domain_mismatch", "refund_rate", "revenue_spike"]
    for public in ("/badge.svg", "/embed"):
        said = (await paid.public(public)).text
        assert "Revenue verified, in review, domain not verified" in said
