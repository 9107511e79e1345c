"""Which shops a store was connected to: what its rows of each are kept under, and when that was."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.actors.store.test_connection import CONNECTED, NOON, SHOP, connect
from tests.actors.store.test_edits_in_turn import begun, sent, wish
from tolsey.actors.refusals import Conflict
from tolsey.actors.store.compliance import forgetting
from tolsey.actors.store.compliance.messages import DestroySalt
from tolsey.actors.store.connection import connecting as rules
from tolsey.actors.store.connection import shops
from tolsey.actors.store.connection.messages import Disconnect, RevokeGrant
from tolsey.actors.store.editing import operations
from tolsey.actors.store.editing.messages import OperationSending
from tolsey.actors.store.editing.queueing import AT_ONCE
from tolsey.actors.store.state import StoreState
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.shops import ConnectionPeriod, ShopOfStore
from tolsey.storage.records.journal import AuditRecord

OTHER = "b.myshopify.com"
LATER = datetime(2026, 8, 1, tzinfo=UTC)
HOME = ShopOfStore(
    store_id="store_1", shop_domain=SHOP, shop_key="store_1", first_connected_at=NOON
)
AWAY = ShopOfStore(
    store_id="store_1",
    shop_domain=OTHER,
    shop_key="store_1@b.myshopify.com",
    sealed_salt="salt",
    first_connected_at=LATER,
)


def periods(records: Iterable[object]) -> list[ConnectionPeriod]:
    return [one for one in records if isinstance(one, ConnectionPeriod)]


def test_the_rows_of_a_stores_first_shop_are_kept_under_the_stores_own_id() -> None:
    new = StoreState(store_id="store_1")
    assert new.shop_key == "store_1"
    (first,) = shops.connected(new, SHOP, "salt", NOON)
    assert first == HOME  # with the salt of the store: no second one


def test_a_shop_of_a_store_that_the_release_before_connected_is_its_first() -> None:
    assert shops.connected(CONNECTED, OTHER, "salt", LATER) == (HOME, AWAY)


def test_a_shop_that_a_store_comes_back_to_keeps_its_key_and_its_salt() -> None:
    both = StoreState(store_id="store_1", shops=(HOME, AWAY))
    assert shops.connected(both, SHOP, "another", LATER + timedelta(days=1)) is both.shops
    assert shops.connected(both, OTHER, "another", LATER + timedelta(days=1)) is both.shops


def test_a_shop_that_the_audit_trail_told_of_gets_its_salt_when_it_is_connected_again() -> None:
    answered = ShopOfStore(
        store_id="store_1",
        shop_domain=OTHER,
        shop_key="store_1@b.myshopify.com",
        first_connected_at=LATER,
    )
    state = StoreState(store_id="store_1", shops=(HOME, answered))
    assert shops.connected(state, OTHER, "salt", LATER + timedelta(days=1)) == (HOME, AWAY)


def test_the_shop_that_is_connected_says_under_which_key_its_rows_are() -> None:
    away = rules.connect(CONNECTED, connect(OTHER)).state
    assert away.shop_key == "store_1@b.myshopify.com"
    assert rules.connect(away, connect(SHOP)).state.shop_key == "store_1"


def test_a_step_that_comes_late_takes_no_salt_of_a_shop_that_came_back() -> None:
    late = DestroySalt(SHOP, "store_1")
    known = replace(CONNECTED, shops=(HOME,))
    left = rules.disconnect(known, Disconnect(LATER, "usr_1")).state
    gone = forgetting.destroy_salt(left, late)
    assert gone.reply is True
    back = rules.connect(gone.state, replace(connect(SHOP), sealed_salt="new")).state
    again = forgetting.destroy_salt(back, late)
    assert (again.reply, again.state) == (False, back)

    same = rules.connect(left, connect(SHOP)).state
    with pytest.raises(Conflict):
        forgetting.destroy_salt(same, late)


def test_each_connection_has_its_time_in_the_history_and_its_end() -> None:
    decision = rules.connect(CONNECTED, connect(OTHER, LATER))
    assert periods(decision.records) == [
        ConnectionPeriod(
            store_id="store_1",
            connected_at=NOON,
            shop_domain=SHOP,
            ended_at=LATER,
            ending="replaced",
        ),
        ConnectionPeriod(store_id="store_1", connected_at=LATER, shop_domain=OTHER),
    ]
    gone = rules.disconnect(CONNECTED, Disconnect(LATER, "usr_1"))
    assert [one.ending for one in periods(gone.records)] == ["disconnected"]
    removed = rules.uninstall(CONNECTED, RevokeGrant(shop_domain=SHOP, happened_at=LATER, at=LATER))
    assert [one.ending for one in periods(removed.records)] == ["uninstalled"]
    again = rules.connect(gone.state, connect(OTHER, LATER))
    assert [one.ended_at for one in periods(again.records)] == [None]  # it ended once


def test_what_an_agent_asked_of_a_shop_is_not_done_in_the_next_one() -> None:
    wishes = [wish(f"op_{n}", subject=f"product/{n}") for n in range(AT_ONCE + 2)]
    state = replace(CONNECTED, operations=sent(begun(*wishes)).operations)
    assert {one.state for one in state.operations} == {"running", "waiting"} | {"sent"}

    same = rules.connect(state, connect(SHOP))
    assert same.state.operations == state.operations
    decision = rules.connect(state, connect(OTHER))

    assert decision.state.operations == ()
    kept = [one for one in decision.records if isinstance(one, AgentOperation)]
    assert {one.operation_id: (one.state, one.code) for one in kept} == {
        "op_0": ("rejected", "shop_changed"),
        "op_1": ("unclear", "shop_changed"),  # it was sent: nobody can look in that shop any more
        **{f"op_{n}": ("rejected", "shop_changed") for n in range(2, AT_ONCE + 2)},
    }
    assert all(one.intent is None and one.finished_at == connect().at for one in kept)
    assert sum(isinstance(one, AuditRecord) for one in decision.records) == 1 + len(kept)
    assert set(decision.resolve or {}) == {
        "token",
        *(f"operation:op_{n}" for n in range(AT_ONCE + 2)),
    }
    late = operations.sending(
        decision.state, OperationSending(operation_id="op_0", sends=0, before="{}", at=LATER)
    )
    assert late.reply is False  # so its call ends without a word to the platform
