"""A seller decides how a metric is shown; nothing public says more, and the exact one can be proven later."""

import base64
import hashlib
import json

import httpx

from tests.http.account_books import RESTRICTED_KEY, Account
from tests.http.listings.seller_side import PUBLIC, Seller, check

KEY = {"restrictedKey": RESTRICTED_KEY}
HIDDEN = dict.fromkeys(("revenue30d", "mrr", "subscribers"), "hidden")
BUCKETS = dict.fromkeys(HIDDEN, "bucket")


async def show(seller: Seller, visibility: dict[str, str]) -> httpx.Response:
    return await seller.browser.patch(seller.path, json={"visibility": visibility})


async def test_a_range_stands_for_the_metric_in_all_that_is_public(verified: Seller) -> None:
    exact = (await verified.public("/verification")).json()
    assert exact["revenue30d"] == 14_345
    assert (await show(verified, BUCKETS)).status_code == 200

    proof = (await verified.public("/verification")).json()
    assert (proof["revenue30d"], proof["annualised"], proof["mrr"], proof["arr"]) == (None,) * 4
    assert proof["ranges"]["revenue30d"] == {"from": 0, "below": 100_000}
    assert proof["ranges"]["annualised"] == {"from": 0, "below": 1_200_000}
    assert proof["visibility"] == BUCKETS
    assert proof["refundsOfEarlierOrders30d"] is None
    keys = (await verified.browser.get("/.well-known/verification-keys.json")).json()
    check(proof, keys)

    (day,) = (await verified.public("/history")).json()["items"]
    assert (day["revenue30d"], day["mrr"], day["annualised"]) == (None, None, None)
    assert day["ranges"].items() <= proof["ranges"].items()
    assert "under USD 1,000 in 30 days" in (await verified.public("/badge.svg")).text
    assert (await verified.public()).json()["multiples"]["annualisedRevenue"] is None
    listed = (await verified.browser.get(PUBLIC)).json()["items"]
    answered = [
        proof,
        day,
        listed,
        (await verified.public()).json(),
        (await verified.public("/embed")).text,
    ]
    assert "14345" not in json.dumps(answered)
    assert "143.45" not in json.dumps(answered)


async def test_a_hidden_metric_is_not_told_at_all_and_the_badge_stays(verified: Seller) -> None:
    await show(verified, HIDDEN)
    proof = (await verified.public("/verification")).json()
    assert (proof["state"], proof["revenue30d"], proof["ranges"]) == ("verified", None, {})
    badge = (await verified.public("/badge.svg")).text
    assert "Verified revenue" in badge
    assert "30 days" not in badge
    embed = (await verified.public("/embed")).text
    assert "<dl>" not in embed
    assert "synced just now" in embed.lower()


async def test_a_second_source_tells_no_more_than_the_first(
    verified: Seller, account: Account
) -> None:
    account.answer_next("/v1/account", account.own())
    account.answer_next("/v1/account", account.own())
    assert (await verified.post("verify/payments", KEY)).status_code == 200
    await verified.synced()
    await show(verified, BUCKETS | {"revenue30d": "hidden"})
    proof = (await verified.public("/verification")).json()
    second = proof["corroboration"]
    assert (second["revenue30d"], second["mrr"]) == (None, None)
    assert second["ranges"] == {"mrr": {"from": 0, "below": 100_000}}
    assert "A second source is 4.6 % apart." in (await verified.public("/embed")).text


async def test_the_seller_goes_on_reading_the_metrics_as_they_are(verified: Seller) -> None:
    await show(verified, HIDDEN)
    own = (await verified.read())["verification"]
    assert (own["revenue30d"], own["visibility"], own["ranges"]) == (14_345, HIDDEN, {})


async def test_an_opening_proves_the_metric_behind_a_range_of_the_same_sync(
    verified: Seller,
) -> None:
    await show(verified, BUCKETS)
    given = (await verified.browser.get(f"{verified.path}/verification/opening")).json()
    public = (await verified.public("/verification")).json()
    assert given["document"]["commitment"] == public["commitment"] == committed(given["opening"])
    assert given["opening"]["revenue30d"] == 14_345
    assert given["opening"]["windowEnd"] == public["windowEnd"]
    assert committed({**given["opening"], "revenue30d": 14_346}) != public["commitment"]


async def test_what_is_hidden_changes_what_is_shown_and_not_what_is_bound(verified: Seller) -> None:
    before = (await verified.public("/verification")).json()["commitment"]
    await show(verified, HIDDEN)
    assert (await verified.public("/verification")).json()["commitment"] == before


async def test_a_listing_without_numbers_opens_nothing(seller: Seller) -> None:
    answer = await seller.browser.get(f"{seller.path}/verification/opening")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_way_to_show_that_there_is_not_is_refused(verified: Seller) -> None:
    answer = await show(verified, {"mrr": "rounded"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "visibility.mrr"
    assert (await show(verified, {"profit": "hidden"})).status_code == 422


def committed(opening: dict[str, object]) -> str:
    """Bind an opening as its documentation says, without the code that makes it."""
    text = json.dumps(opening, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
