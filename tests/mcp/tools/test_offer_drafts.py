"""An agent prepares the answer to an offer; only people of its side see it, and only they send it."""

from typing import Any

import httpx
import orjson

from tests.mcp.tools.shop import answered
from tests.mcp.tools.two_stores import TwoStores, refused
from tolsey.http.mcp.tools.registry import stores_registry
from tolsey.http.oauth.scopes import DEFAULT, SCOPES

COUNTER = {
    "reply": "counter",
    "amount": {"amount": "19000.00", "currency": "USD"},
    "message": "We could meet here.",
    "note": "The buyer has shown no funds yet.",
    "contingencies": ["The domain moves first"],
}
OFFER = "/api/marketplace/offers/offer_ann"


async def buyer_of_anns(two_stores: TwoStores) -> httpx.AsyncClient:
    """Let Bob in as an owner of the organization that buys from Ann."""
    await two_stores.database.execute(
        "INSERT INTO organizations (id, name, plan) VALUES ('org_buyer_of_ann', 'Buyer', 'pro')"
    )
    await two_stores.database.execute(
        "INSERT INTO members (organization_id, user_id, role) VALUES ('org_buyer_of_ann', $1, 'owner')",
        two_stores.bob.user_id,
    )
    return await two_stores.person(two_stores.bob.user_id)


async def test_an_agent_prepares_a_counter_offer_that_a_person_changes_and_sends(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.ann, ["offers:write"])
    ann, ben = await two_stores.person(two_stores.ann.user_id), await buyer_of_anns(two_stores)
    named = {"deal_id": two_stores.ann.deal, "offer_id": "offer_ann"}

    async def asked(key: str, **more: Any) -> dict[str, Any]:
        call = await agent.call(
            "draft_offer_reply", idempotency_key=f"key-{key:>08}", **named, **more
        )
        return answered(call)

    before = (await ann.get(f"/api/marketplace/deals/{two_stores.ann.deal}")).json()
    tried = await asked("1", **COUNTER, dry_run=True)
    assert (tried["status"], tried["after"]["reply"]) == ("planned", "counter")
    assert (await ann.get(f"{OFFER}/draft")).status_code == 404

    kept = await asked("2", **COUNTER)
    assert kept["status"] == "applied"
    assert kept["after"]["counter"]["amount"] == {"amount": "19000.00", "currency": "USD"}
    assert (await asked("2", **COUNTER))["status"] == "replayed"
    draft = (await ann.get(f"{OFFER}/draft")).json()
    assert (draft["side"], draft["reply"], draft["note"]) == ("seller", "counter", COUNTER["note"])
    assert draft["counter"]["amount"] == {"amount": 1_900_000, "currency": "USD"}
    assert draft["counter"]["type"] == "cash"

    # The other side is told nothing, by no address and on no page; the deal is what it was.
    assert (await ben.get(f"{OFFER}/draft")).status_code == 404
    assert (await ben.delete(f"{OFFER}/draft")).status_code == 404
    for address in (
        f"/deals/{two_stores.ann.deal}",
        f"/deals/{two_stores.ann.deal}/offer?to=offer_ann&draft=yes",
    ):
        shown = await ben.get(address)
        assert shown.status_code == 200, shown.text
        assert "19,000" not in shown.text
        assert "We could meet here." not in shown.text
    assert (await ann.get(f"/api/marketplace/deals/{two_stores.ann.deal}")).json() == before

    page = await ann.get(f"/deals/{two_stores.ann.deal}")
    assert "Counter with USD 19,000" in page.text, page.text[page.text.index("<main") :]
    assert "We could meet here." in page.text
    form = await ann.get(f"/deals/{two_stores.ann.deal}/offer?to=offer_ann&draft=yes")
    for one in ('value="19,000"', "The domain moves first", "We could meet here."):
        assert one in form.text, one
    sent = await ann.post(
        f"/deals/{two_stores.ann.deal}/offer?to=offer_ann&draft=yes",
        data={"amount": "19,500", "type": "cash", "inventory": "included", "validFor": "72"},
    )
    assert sent.status_code == 303, sent.text
    deal = (await ben.get(f"/api/marketplace/deals/{two_stores.ann.deal}")).json()
    assert (deal["offer"]["side"], deal["offer"]["amount"]["amount"]) == ("seller", 1_950_000)
    assert "agent prepared" not in (await ann.get(f"/deals/{two_stores.ann.deal}")).text


async def test_only_the_last_draft_is_kept_and_a_person_discards_it(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann, ["offers:write"])
    ann = await two_stores.person(two_stores.ann.user_id)
    named = {"deal_id": two_stores.ann.deal, "offer_id": "offer_ann"}
    for key, reply in (("key-00001", "accept"), ("key-00002", "reject")):
        done = await agent.call("draft_offer_reply", idempotency_key=key, reply=reply, **named)
        assert answered(done)["status"] == "applied"
    rows = await two_stores.database.fetch("SELECT reply FROM offer_drafts")
    assert [row["reply"] for row in rows] == ["reject"]
    page = await ann.get(f"/deals/{two_stores.ann.deal}")
    assert f"/deals/{two_stores.ann.deal}/offers/offer_ann/reject" in page.text
    gone = await ann.post(f"/deals/{two_stores.ann.deal}/offer/discard?to=offer_ann")
    assert gone.headers["Location"].endswith("?done=discarded")
    assert (await ann.get(f"{OFFER}/draft")).status_code == 404
    assert (await ann.delete(f"{OFFER}/draft")).status_code == 404
    audits = await two_stores.database.fetch(
        "SELECT actor FROM audit_log WHERE event = 'offer_draft.discarded'"
    )
    assert [row["actor"] for row in audits] == [two_stores.ann.user_id]
    assert (await ann.get(f"/api/marketplace/deals/{two_stores.ann.deal}")).json()[
        "stage"
    ] == "NDA_SIGNED"


async def test_what_nobody_could_send_is_not_prepared(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann, ["offers:write"])
    named = {
        "deal_id": two_stores.ann.deal,
        "offer_id": "offer_ann",
        "idempotency_key": "key-00001",
    }
    euros = {"amount": {"amount": "19000.00", "currency": "EUR"}}
    for wrong, said in (
        ({"reply": "counter", **euros}, "amount.currency must be USD"),
        ({"reply": "counter"}, "a counteroffer requires amount"),
        ({"reply": "reject", "message": "No"}, "only a counteroffer can have message"),
        ({**COUNTER, "contingencies": ["x" * 201]}, "contingencies"),
        ({"reply": "accept", "offer_id": "offer_bob"}, "This offer doesn't exist"),
        ({"reply": "accept", "deal_id": two_stores.bob.deal}, "This deal doesn't exist"),
    ):
        assert said in refused(await agent.call("draft_offer_reply", **{**named, **wrong})), wrong
    # Its own offer is not its to answer; what ended is nobody's any more.
    await two_stores.database.execute(
        "UPDATE deal_offers SET side = 'seller' WHERE id = 'offer_bob'"
    )
    bobs = await two_stores.agent(two_stores.bob, ["offers:write"])
    of_bob = {**named, "deal_id": two_stores.bob.deal, "offer_id": "offer_bob", "reply": "accept"}
    assert "other party" in refused(await bobs.call("draft_offer_reply", **of_bob))
    ann = await two_stores.person(two_stores.ann.user_id)
    assert (await ann.post(f"{OFFER}/reject")).status_code == 200
    late = await agent.call("draft_offer_reply", **named, reply="accept")
    assert "no longer open" in refused(late)
    assert await two_stores.database.fetch("SELECT FROM offer_drafts") == []
    reader = await two_stores.agent(two_stores.ann, ["deals:read"])
    denied = await reader.call("draft_offer_reply", **named, reply="reject")
    assert denied.status_code == 403


async def test_no_tool_signs_accepts_or_advances_and_the_scope_says_so(
    two_stores: TwoStores,
) -> None:
    assert "offers:write" not in DEFAULT
    for scope in ("deals:read", "offers:write"):
        assert "no agent signs, accepts or moves" in SCOPES[scope]
    of_deals = {
        name
        for name, tool in stores_registry(two_stores.service).tools.items()
        if tool.scopes & {"deals:read", "offers:write"}
    }
    assert of_deals == {"list_deals", "get_deal", "list_offers", "draft_offer_reply"}
    # Whatever it prepares, neither the deal nor its ledger nor an offer changes.
    agent = await two_stores.agent(two_stores.ann, ["deals:read", "offers:write"])
    count = "SELECT (SELECT count(*) FROM deal_events) AS e, (SELECT jsonb_agg(o) FROM deal_offers o) AS o, (SELECT jsonb_agg(t) FROM deal_threads t) AS t"
    before = [tuple(row) for row in await two_stores.database.fetch(count)]
    done = await agent.call(
        "draft_offer_reply",
        idempotency_key="key-accept",
        deal_id=two_stores.ann.deal,
        offer_id="offer_ann",
        reply="accept",
    )
    assert answered(done)["after"]["reply"] == "accept"
    assert [tuple(row) for row in await two_stores.database.fetch(count)] == before
    assert orjson.dumps(before)
