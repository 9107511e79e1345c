"""Deals at random: whatever buyers, sellers, operators and the clock do, the rules of a market hold."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.listing.deals.market import (
    PRICE,
    Market,
    approves,
    requests,
    walked,
    written_nda,
)
from tolsey.actors.listing.deals import negotiating, turns
from tolsey.actors.listing.deals.messages import (
    AdvanceDeal,
    AnswerOffer,
    DrawUpNda,
    MakeOffer,
    OfferTerms,
    RequestAccess,
)
from tolsey.actors.listing.deals.signatures import signing
from tolsey.actors.listing.messages import ReviewListing
from tolsey.actors.refusals import Conflict
from tolsey.runtime.decision import Tell
from tolsey.storage.records.selling.deals import LegalDocument


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_no_sequence_of_moves_breaks_a_rule_of_the_market(seed: int) -> None:
    walked(seed)


def offered(market: Market, buyer: str) -> tuple[str, str]:
    """Let a buyer in, sign the NDA, and offer the price."""
    deal_id, offer_id = f"deal_{buyer}", f"offer_{buyer}"
    asks = RequestAccess(
        deal_id=deal_id, buyer_id=buyer, by="usr_2", message=None, may_sell=True, at=market.now
    )
    assert market.take(requests, asks) is None
    turn = turns.DealTurn(market.state, market.now)
    turn.move(deal_id, "access.approve", actor="S")
    turn.move(deal_id, "nda.signed_by_all", actor="X")
    market.follow(turn.decision(deal_id))
    terms = OfferTerms(amount=PRICE, currency="USD")
    makes = MakeOffer(deal_id=deal_id, offer_id=offer_id, terms=terms, by="usr_2", at=market.now)
    assert market.take(negotiating.offer, makes) is None
    return deal_id, offer_id


def accepts(market: Market, deal_id: str, offer_id: str) -> AnswerOffer:
    return AnswerOffer(
        deal_id=deal_id,
        offer_id=offer_id,
        verb="accept",
        side="seller",
        by="usr_1",
        at=market.now,
    )


def test_of_two_accepted_offers_one_becomes_a_deal() -> None:
    market = Market()
    first, second = offered(market, "org_2"), offered(market, "org_3")

    assert market.take(negotiating.answer, accepts(market, *first)) is None
    refused = market.take(negotiating.answer, accepts(market, *second))

    assert isinstance(refused, Conflict)
    assert refused.code == "guard_failed"
    listing = market.state.listing
    assert listing is not None
    assert listing.status == "UNDER_OFFER"


def test_an_offer_that_waits_while_another_buyer_has_the_exclusivity_keeps_its_time() -> None:
    market = Market()
    first, second = offered(market, "org_2"), offered(market, "org_3")
    market.take(negotiating.answer, accepts(market, *first))
    turn = turns.DealTurn(market.state, market.now)
    turn.move(first[0], "loi.signed_by_all", actor="X")
    market.follow(turn.decision(first[0]))

    market.pass_time(timedelta(days=31))
    waited = market.state.deals[second[0]].offer
    assert waited is not None
    assert waited.status == "PENDING"
    market.pass_time(timedelta(days=3))
    expired = market.state.deals[second[0]].offer
    assert expired is not None
    assert expired.status == "EXPIRED"


def test_who_asks_twice_with_the_same_id_has_one_deal() -> None:
    market = Market()
    asks = RequestAccess(
        deal_id="deal_1", buyer_id="org_2", by="u", message=None, may_sell=True, at=market.now
    )

    assert market.take(requests, asks) is None
    assert market.take(requests, asks) is None
    assert len(market.lines["deal_1"]) == 1


def asks_for_access(market: Market) -> RequestAccess:
    return RequestAccess(
        deal_id="deal_1", buyer_id="org_2", by="usr_2", message=None, may_sell=True, at=market.now
    )


@pytest.mark.parametrize("is_automatic", [True, False])
def test_one_decision_lets_a_buyer_in_and_draws_up_the_nda(is_automatic: bool) -> None:
    market = Market()
    listing = market.state.listing
    assert listing is not None
    listing = replace(listing, auto_approve_access=is_automatic)
    market.state = replace(market.state, listing=listing)
    decision = requests(market.state, asks_for_access(market))
    if not is_automatic:
        market.follow(decision)
        approval = AdvanceDeal(
            deal_id="deal_1",
            event="access.approve",
            expected_stage="INQUIRY",
            actor="S",
            by="usr_1",
            at=market.now,
        )
        decision = approves(market.state, approval)
    market.follow(decision)

    head = market.state.deals["deal_1"]
    assert head.signature is not None
    assert (head.deal.stage, head.signature.document_type) == ("NDA_PENDING", "NDA")
    assert head.signature.requested_by == ("service" if is_automatic else "usr_1")
    events = [orjson.loads(line.body)["event"] for line in market.lines["deal_1"]]
    assert events == ["access.request", "access.approve", "signature.requested"]
    (document,) = [one for one in decision.records if isinstance(one, LegalDocument)]
    assert market.lines["deal_1"][1].hash in document.content, "it is of the deal as approved"
    ends = [one.message for one in decision.effects if isinstance(one, Tell)]
    assert [one.signature_id for one in ends if hasattr(one, "signature_id")] == [head.signature.id]
    market.check_ledgers()


def test_a_missing_nda_is_drawn_up_once_and_only_where_it_is_missing() -> None:
    market = Market()
    market.take(requests, asks_for_access(market))
    wanted = DrawUpNda(deal_id="deal_1", at=market.now)
    unknown = DrawUpNda(deal_id="deal_2", at=market.now)
    for message in (wanted, unknown):
        assert signing.draw_up_nda(market.state, message, written_nda).state is market.state
    turn = turns.DealTurn(market.state, market.now)
    turn.move("deal_1", "access.approve", actor="S")  # as releases before left it
    market.follow(turn.decision("deal_1"))

    drawn = signing.draw_up_nda(market.state, wanted, written_nda)
    market.follow(drawn)

    signature = market.state.deals["deal_1"].signature
    assert signature is not None
    assert (signature.document_type, signature.requested_by) == ("NDA", "service")
    assert len(drawn.effects) == 3, "one timer, and an email to each party"
    again = signing.draw_up_nda(market.state, wanted, written_nda)
    assert (again.state, again.records, again.effects) == (market.state, (), ())
    market.check_ledgers()


@pytest.mark.parametrize("buyer", ["org_1", "org_2"])
def test_nobody_buys_from_themselves_or_twice_at_once(buyer: str) -> None:
    market = Market()
    offered(market, "org_2")
    asks = RequestAccess(
        deal_id="deal_9", buyer_id=buyer, by="u", message=None, may_sell=True, at=market.now
    )

    refused = market.take(requests, asks)

    assert isinstance(refused, Conflict)
    assert refused.code in ("own_listing", "deal_open")


def test_a_listing_that_is_suspended_comes_back_when_its_deal_is_over() -> None:
    market = Market()
    first = offered(market, "org_2")
    market.take(negotiating.answer, accepts(market, *first))
    review = negotiating.following(negotiating.reviewed)
    suspend = ReviewListing(verdict="suspend", reason="odd", by="usr_A", at=market.now)
    reinstate = ReviewListing(verdict="reinstate", reason="fine", by="usr_A", at=market.now)

    assert market.take(review, suspend) is None
    refused = market.take(review, reinstate)
    assert isinstance(refused, Conflict)
    turn = turns.DealTurn(market.state, market.now)
    turn.move(first[0], "withdraw", actor="B")
    market.follow(turn.decision(first[0]))
    assert market.take(review, reinstate) is None
