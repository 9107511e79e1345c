"""One life of a customer, as the processor documents it, and what it comes to."""

import json
import random
from typing import Any

import pytest

from tests.actors.organization.pure_organization import DOLLAR, PureOrganization
from tests.golden.cases import HERE
from tests.seeds import seeds
from tolsey.actors.organization.billing.messages import ApplyPaymentEvent, PricedOffer
from tolsey.actors.organization.billing.payment_events.catalogue import keep, read
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.actors.organization.billing.payment_events.payouts import OfAPerson
from tolsey.actors.organization.state import OrganizationState

LIFE = HERE / "payments" / "synthetic-endive"
OFFERS = (
    PricedOffer("price_pro_month", "pro", "monthly"),
    PricedOffer("price_max5_month", "max_5x", "monthly"),
)


def message(body: dict[str, Any]) -> ApplyPaymentEvent | None:
    envelope = open_envelope(body)
    facts = read(envelope)
    if isinstance(facts, OfAPerson):
        return None
    return ApplyPaymentEvent(
        event_id=envelope.event_id,
        type=envelope.type,
        livemode=envelope.livemode,
        created_at=envelope.created_at,
        facts=keep(facts),
        at=envelope.created_at,
        offers=OFFERS,
    )


def life() -> list[tuple[str, ApplyPaymentEvent]]:
    found = (
        (file.name[:2], message(json.loads(file.read_text()))) for file in sorted(LIFE.glob("*"))
    )
    return [(number, answered) for number, answered in found if answered is not None]


def customer() -> PureOrganization:
    return PureOrganization(OrganizationState("org_T1"))


def test_the_given_life_grants_what_it_paid_for() -> None:
    answered = customer()
    after: dict[str, Any] = {}
    for number, one in life():
        assert answered.apply(one).state in {"applied", "ignored"}
        after[number] = (answered.plan, answered.dollars)
    assert after["02"] == ("free", 0)
    assert after["03"] == ("pro", 49)
    assert after["05"] == ("pro", 49), "an upgrade that is not paid yet"
    assert after["06"] == ("max_5x", 149)
    assert after["07"] == ("max_5x", 149)
    assert after["08"] == after["09"] == ("max_5x", 149 + 50)
    assert after["10"] == ("max_5x", 149 + 25)
    assert after["11"] == ("max_5x", 149)
    assert after["17"][0] == "max_5x", "it is dunned"
    assert after["19"][0] == "free"


@pytest.mark.parametrize("seed", seeds(50))
def test_the_given_life_comes_to_the_same_in_any_order(seed: int) -> None:
    events = [one for _, one in life()]
    orderly, answered = customer(), customer()
    for one in events:
        orderly.apply(one)
    chance = random.Random(seed)  # noqa: S311 - a shuffle
    shuffled = [*events, *chance.choices(events, k=5)]
    chance.shuffle(shuffled)
    for one in shuffled:
        answered.apply(one)
    assert (answered.plan, answered.dollars, answered.kinds) == (
        orderly.plan,
        orderly.dollars,
        orderly.kinds,
    )
    assert answered.dollars * DOLLAR % 1 == 0
