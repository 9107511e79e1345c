from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tolsey.actors.organization import plans
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.stores import opening
from tolsey.actors.organization.stores.messages import CloseStore, OpenStore, StoreOpened
from tolsey.actors.refusals import Conflict, NotFound, PaymentRequired
from tolsey.runtime.decision import Decision
from tolsey.storage.records.commerce.stores import StoreRecord
from tolsey.storage.records.journal import AuditRecord

AT = datetime(2026, 7, 1, tzinfo=UTC)
EMPTY = OrganizationState("org_1")
OPEN = OpenStore(
    store_id="store_1", name="Corner shop", user_id="usr_1", at=AT, sealed_salt="v1.k.sealed"
)
STORE = StoreRecord(
    id="store_1",
    organization_id="org_1",
    name="Corner shop",
    sealed_salt="v1.k.sealed",
    created_at=AT,
)


def test_the_first_store_of_a_free_organization_is_opened() -> None:
    assert opening.open_store(EMPTY, OPEN) == Decision(
        # An organization that is awake must not know a salt that is destroyed elsewhere.
        replace(EMPTY, stores=(replace(STORE, sealed_salt=""),)),
        reply=StoreOpened("store_1", "Corner shop", AT),
        records=(
            STORE,
            AuditRecord(
                event="store.created", subject="store_1", organization_id="org_1", actor="usr_1"
            ),
        ),
    )


def test_the_same_store_again_answers_the_one_it_made() -> None:
    state = replace(EMPTY, stores=(STORE,))
    decision = opening.open_store(state, replace(OPEN, name="Another name"))
    assert decision == Decision(state, reply=StoreOpened("store_1", "Corner shop", AT))


@pytest.mark.parametrize(
    ("plan", "included", "proposed"),
    [
        ("free", 1, "pro"),
        ("pro", 3, "max_5x"),
        ("max_5x", 10, "max_20x"),
        ("max_20x", 50, "custom"),
    ],
)
def test_a_store_more_than_included_proposes_the_next_plan(
    plan: str, included: int, proposed: str
) -> None:
    owned = tuple(replace(STORE, id=f"store_{number}x") for number in range(included))
    state = OrganizationState("org_1", plan=plan, stores=owned[:-1])
    opened = StoreOpened("store_1", "Corner shop", AT)
    assert opening.open_store(state, OPEN).reply == opened
    with pytest.raises(PaymentRequired) as refused:
        opening.open_store(replace(state, stores=owned), OPEN)
    assert refused.value.code == "store_limit"
    assert refused.value.fields["plan"] == proposed


def test_a_downgraded_organization_keeps_its_stores_and_is_offered_what_holds_one_more() -> None:
    owned = tuple(replace(STORE, id=f"store_{number}x") for number in range(5))
    with pytest.raises(PaymentRequired) as refused:
        opening.open_store(replace(EMPTY, stores=owned), OPEN)
    assert refused.value.fields["plan"] == "max_5x"


def test_a_contract_says_how_many_stores_a_custom_plan_has() -> None:
    assert plans.stores_included("custom", 7) == 7
    assert plans.stores_included("custom", None) is None


def test_a_closed_store_frees_its_place() -> None:
    state = replace(EMPTY, stores=(STORE,))
    closed = opening.close_store(state, CloseStore("store_1", "usr_1", AT))
    assert closed.reply is True
    assert closed.state.open_stores == []
    reopened = opening.open_store(closed.state, replace(OPEN, store_id="store_2"))
    assert reopened.reply == StoreOpened("store_2", "Corner shop", AT)
    with pytest.raises(Conflict):
        opening.open_store(closed.state, OPEN)


def test_closing_twice_changes_nothing_more() -> None:
    assert opening.close_store(EMPTY, CloseStore("store_1", "usr_1", AT)) == Decision(
        EMPTY, reply=False
    )


def test_an_organization_that_is_not_there_opens_nothing() -> None:
    with pytest.raises(NotFound):
        opening.open_store(replace(EMPTY, exists=False), OPEN)
