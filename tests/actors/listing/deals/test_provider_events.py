"""What providers tell comes early, late, twice and out of order: a deal goes each way once, and as far as is so."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actors.listing.deals.market import PRICE, Market, requests
from tests.actors.listing.deals.test_deals import accepts, offered
from tolsey.actors.listing.deals import negotiating, turns
from tolsey.actors.listing.deals.messages import (
    CompleteEnvelope,
    DealFields,
    EnvelopeSigner,
    FollowEscrow,
    RequestAccess,
    RequestSignature,
    StoreHandedOver,
)
from tolsey.actors.listing.deals.moves import GuardFailed
from tolsey.actors.listing.deals.signatures import providers, signing
from tolsey.actors.refusals import Conflict, InvalidTransition, NotFound
from tolsey.storage.records.selling.deals import DealThread

DEAL = "deal_org_2"
ESCROW = "3300001"
STAMPS = {"NDA": "nda_signed_at", "LOI": "loi_signed_at", "APA": "apa_signed_at"}


def moved(market: Market, *steps: tuple[str, str]) -> None:
    """Make moves, each by its letter."""
    turn = turns.DealTurn(market.state, market.now)
    given = DealFields(escrow_id=ESCROW, amount=PRICE, currency="USD")
    for event, actor in steps:
        turn.move(DEAL, event, actor=actor, given=given)
    market.follow(turn.decision(DEAL))


def asked(market: Market, kind: str, provider: str = "EXTERNAL_A") -> CompleteEnvelope:
    """Put a document before both parties at a provider; answers what it says once both signed there."""
    deal = market.state.deals[DEAL].deal
    message = RequestSignature(
        deal_id=DEAL,
        signature_id=f"sig_{kind}",
        document_type=kind,
        provider=provider,
        hosted_url=None,
        template_version="t",
        document=kind,
        basis=deal.hash,
        actor="S",
        by="usr_1",
        at=market.now,
    )
    assert market.take(signing.request, message) is None
    signature = market.state.deals[DEAL].signature
    assert signature is not None
    signers = tuple(
        EnvelopeSigner(side=side, name=side, email_sha256="e", signed_at=market.now)
        for side in ("buyer", "seller")
    )
    return CompleteEnvelope(
        deal_id=DEAL,
        signature_id=signature.id,
        envelope_id=f"env_{kind}",
        document_sha256=signature.document_sha256,
        signers=signers,
        at=market.now,
    )


def lines(market: Market) -> Counter[str]:
    return Counter(orjson.loads(line.body)["event"] for line in market.lines[DEAL])


def deal_of(market: Market) -> DealThread:
    return market.state.deals[DEAL].deal


def brought_to(kind: str) -> tuple[Market, CompleteEnvelope]:
    """Bring a deal to where a document of a kind waits for its signatures at a provider."""
    market = Market()
    if kind == "NDA":
        wish = RequestAccess(
            deal_id=DEAL, buyer_id="org_2", by="usr_2", message=None, may_sell=True, at=market.now
        )
        assert market.take(requests, wish) is None
        moved(market, ("access.approve", "S"))
    else:
        assert market.take(negotiating.answer, accepts(market, *offered(market, "org_2"))) is None
    if kind == "APA":
        moved(market, ("fasttrack.agree", "B"), ("fasttrack.agree", "S"))
    return market, asked(market, kind)


@pytest.mark.parametrize("kind", ["NDA", "LOI", "APA"])
def test_each_document_is_signed_at_a_provider_once(kind: str) -> None:
    market, done = brought_to(kind)
    before = deal_of(market)
    for wrong in (
        {"document_sha256": "0" * 64},
        {"signers": done.signers[:1]},
        {"signature_id": "sig_other"},
    ):
        message = CompleteEnvelope(**{**vars(done), **wrong})
        assert isinstance(market.take(providers.envelope, message), Conflict | InvalidTransition)
    assert deal_of(market) == before
    for _ in range(3):
        assert market.take(providers.envelope, done) is None
    after = deal_of(market)
    assert getattr(after, STAMPS[kind]) == market.now
    assert lines(market)[f"{kind.lower()}.signed_by_all"] == 1
    assert [event.seq for event in market.chains[done.signature_id]] == [1, 2]


def test_what_is_to_be_signed_here_counts_by_no_provider() -> None:
    market = Market()
    assert market.take(negotiating.answer, accepts(market, *offered(market, "org_2"))) is None
    done = asked(market, "LOI", "PLATFORM")
    assert isinstance(market.take(providers.envelope, done), Conflict)
    assert deal_of(market).loi_signed_at is None


@dataclass
class Providers:
    """Both providers of a deal: what is so there, and what is told of it."""

    market: Market
    done: CompleteEnvelope
    is_open: bool = False
    is_secured: bool = False
    is_disbursed: bool = False

    def open(self) -> None:
        if deal_of(self.market).apa_signed_at is not None and not self.is_open:
            moved(self.market, ("escrow.open", "S"))
            self.is_open = True

    def fund(self) -> None:
        self.is_secured = True

    def release(self) -> None:
        self.is_disbursed = self.is_secured

    def envelope(self) -> None:
        self.market.take(providers.envelope, self.done)

    def created(self) -> None:
        """Nothing is told to a listing of a transaction that was created."""

    def funded(self) -> None:
        if self.is_secured:
            self.told()

    def released(self) -> None:
        if self.is_disbursed:
            self.told()

    def told(self) -> None:
        """Tell what is so, as it is found when the provider is asked again."""
        message = FollowEscrow(
            deal_id=DEAL,
            escrow_id=ESCROW,
            amount=PRICE,
            currency="USD",
            is_funded=self.is_secured,
            is_released=self.is_disbursed,
            at=self.market.now,
        )
        refused = self.market.take(providers.escrow, message)
        assert (refused is None) == self.is_open, refused


ACTS = ("open", "fund", "release", "envelope", "created", "funded", "released")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_events_of_providers_in_any_order_and_number_lead_to_the_same_deal(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - it chooses tests
    both = Providers(*brought_to("APA"))
    market = both.market
    for _step in range(random.randrange(5, 40)):
        getattr(both, random.choice(ACTS))()
        seen = deal_of(market)
        assert (seen.escrow_funded_at is None) or both.is_secured
        assert (seen.escrow_released_at is None) or both.is_disbursed
        assert seen.stage in ("UNDER_OFFER", "APA_SIGNED", "TRANSFERRING", "CLOSED")
    # In the end everything is so, and told twice more.
    for act in ("envelope", "open", "fund", "release", "released", "funded", "envelope"):
        getattr(both, act)()
    counted = lines(market)
    for event in ("apa.signed_by_all", "escrow.funded", "transfer.start", "escrow.released"):
        assert counted[event] == 1, (event, counted)
    assert deal_of(market).stage == "CLOSED"
    assert market.state.listing is not None
    assert market.state.listing.status == "SOLD"
    assert len([one for one in market.audits if one.event == "marketplace.transaction"]) == 2


def handing_over(assets: list[str]) -> tuple[Market, StoreHandedOver]:
    """Bring the deal about a store to where its things are handed over; answers what the platform says then."""
    market = Market()
    listing = market.state.listing
    assert listing is not None
    sold = replace(listing, store_id="store_1", included_assets=orjson.dumps(assets).decode())
    market.state = replace(market.state, listing=sold)
    assert market.take(negotiating.answer, accepts(market, *offered(market, "org_2"))) is None
    moved(market, ("fasttrack.agree", "B"), ("fasttrack.agree", "S"))
    assert market.take(providers.envelope, asked(market, "APA")) is None
    for step in (("escrow.open", "S"), ("funding.confirm", "B"), ("escrow.funded", "S")):
        moved(market, step)
    says = StoreHandedOver(
        deal_id=DEAL, store_id="store_1", shop_domain="loom.myshopify.com", at=market.now
    )
    return market, says


def delivered(market: Market) -> list[Any]:
    return [one["title"] for one in orjson.loads(deal_of(market).transfer) if one["deliveredAt"]]


@pytest.mark.parametrize(
    ("assets", "closed"),
    [
        (["The store", "The domain"], ["The store"]),
        (["the web shop", "Stock of the store"], ["the web shop"]),
        (["LOOM.myshopify.com", "Shop's Instagram account"], ["LOOM.myshopify.com"]),
        (["The store", "My shop"], []),
        (["The domain"], []),
        ([], []),
    ],
)
def test_a_store_that_the_platform_hands_over_closes_its_item_once_and_no_other(
    assets: list[str], closed: list[str]
) -> None:
    market, says = handing_over(assets)
    before = deal_of(market)
    assert market.take(providers.store, says) is None
    assert deal_of(market) == before, "something was handed over before its list was open"
    moved(market, ("transfer.start", "S"))
    for _ in range(3):
        assert market.take(providers.store, says) is None
    assert delivered(market) == closed
    assert lines(market)["transfer.deliver"] == len(closed)
    assert not any(one["verdict"] for one in orjson.loads(deal_of(market).transfer))


def test_a_store_of_another_deal_closes_nothing() -> None:
    market, says = handing_over(["The store"])
    moved(market, ("transfer.start", "S"))
    before = deal_of(market)
    other_store = replace(says, store_id="store_2")
    assert isinstance(market.take(providers.store, other_store), Conflict)
    other_deal = replace(says, deal_id="deal_other")
    assert isinstance(market.take(providers.store, other_deal), NotFound)
    assert deal_of(market) == before


def test_a_store_that_its_buyer_rejected_is_not_handed_over_again_by_itself() -> None:
    market, says = handing_over(["The store"])
    moved(market, ("transfer.start", "S"))
    assert market.take(providers.store, says) is None
    turn = turns.DealTurn(market.state, market.now)
    no = DealFields(item="asset-1", verdict="rejected", reason="It has another theme.")
    turn.move(DEAL, "transfer.confirm", actor="B", given=no)
    market.follow(turn.decision(DEAL))
    assert market.take(providers.store, says) is None
    (item,) = orjson.loads(deal_of(market).transfer)
    assert item["verdict"] == "rejected"


def test_an_inspection_stands_still_while_its_deal_is_in_dispute() -> None:
    market, says = handing_over(["The store"])
    moved(market, ("transfer.start", "S"))
    assert market.take(providers.store, says) is None
    ends = deal_of(market).inspection_ends_at
    assert ends is not None

    def decided(event: str, actor: str, **given: Any) -> None:
        turn = turns.DealTurn(market.state, market.now)
        turn.move(DEAL, event, actor=actor, given=DealFields(**given))
        market.follow(turn.decision(DEAL))

    decided("dispute.open", "B", reason="It is empty.", evidence="A picture.")
    market.pass_time(timedelta(days=9))
    decided("dispute.resume", "A", reason="Look again.")
    assert deal_of(market).inspection_ends_at == ends + timedelta(days=9)
    with pytest.raises(GuardFailed):
        decided("deal.close", "S")
    market.pass_time(timedelta(days=7))
    decided("deal.close", "S")
    assert deal_of(market).stage == "CLOSED"
