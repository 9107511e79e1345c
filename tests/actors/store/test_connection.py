"""A store's grant: given, used, renewed, refused, taken away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.mail import TellPeople
from tolsey.actors.refusals import NotFound, Unavailable
from tolsey.actors.store.connection import connecting as rules
from tolsey.actors.store.connection import tokens
from tolsey.actors.store.connection.messages import (
    Connect,
    Disconnect,
    ForgetShops,
    ReconcileSubscriptions,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RenewToken,
    RevokeGrant,
    RevokeListingSources,
    SubscriptionsReconciled,
    Token,
    TokenState,
    UseToken,
)
from tolsey.actors.store.messages import Outcome
from tolsey.actors.store.state import StoreState
from tolsey.runtime.codec import decode, encode
from tolsey.runtime.decision import Parked, Perform
from tolsey.storage.records.commerce.connection import Connection, ShopProfile

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
SHOP = "a.myshopify.com"
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
CONNECTED = StoreState(
    store_id="store_1",
    organization_id="org_1",
    connection=Connection(
        store_id="store_1",
        shop_domain=SHOP,
        status="active",
        connected_at=NOON,
        client_id="app",
        access_token="sealed token",
        token_expires_at=NOON + DAY,
        client_secret="sealed secret",
        former_secret="sealed former",
        scopes=("read_orders",),
        scopes_at=NOON,
    ),
    shop=ShopProfile(store_id="store_1", shop_domain=SHOP, facts_at=NOON),
)


def connect(shop: str = SHOP, at: datetime = NOON + DAY) -> Connect:
    profile = ShopProfile(store_id="store_1", shop_domain=shop, facts_at=at, currency="EUR")
    return Connect(
        at=at,
        user_id="usr_1",
        shop=profile,
        client_id="app",
        access_token="t2",
        client_secret="s2",
        scopes=("read_products",),
        expires_at=at + DAY,
    )


def calls(decision: object) -> list[object]:
    return [effect.call for effect in decision.effects if isinstance(effect, Perform)]  # type: ignore[attr-defined]


def test_a_connected_store_subscribes_and_forgets_what_the_receiver_knew() -> None:
    decision = rules.connect(StoreState(store_id="store_1", organization_id="org_1"), connect())

    assert decision.state.connection is not None
    assert decision.state.connection.status == "active"
    assert decision.state.shop is not None
    assert decision.state.shop.currency == "EUR"
    assert calls(decision) == [
        ReconcileSubscriptions("store_1", NOON + DAY, "org_1"),
        ForgetShops((SHOP,)),
    ]
    assert "sealed" not in repr(decision.reply)


def test_a_new_secret_of_the_same_app_keeps_the_former_one_for_a_while() -> None:
    connection = rules.connect(CONNECTED, connect()).state.connection

    assert connection is not None
    assert (connection.client_secret, connection.former_secret) == ("s2", "sealed secret")


def test_a_store_repointed_to_another_shop_keeps_no_secret_of_the_old_one() -> None:
    decision = rules.connect(CONNECTED, connect("b.myshopify.com"))

    assert decision.state.connection is not None
    assert decision.state.connection.former_secret is None
    assert calls(decision)[-1] == ForgetShops((SHOP, "b.myshopify.com"))


def test_reconnecting_serves_those_who_waited_for_the_old_token() -> None:
    decision = rules.connect(CONNECTED, connect())

    token = (decision.resolve or {})["token"]
    assert isinstance(token, Token)
    assert token.access_token == "t2"


def test_disconnecting_erases_every_credential() -> None:
    decision = rules.disconnect(CONNECTED, Disconnect(NOON, "usr_1"))

    connection = decision.state.connection
    assert connection is not None
    assert connection.status == "disconnected"
    assert "sealed" not in connection.row().metadata
    assert (connection.access_token, connection.client_id) == (None, None)
    assert rules.view(decision.state).token_state is TokenState.UNAVAILABLE


def test_a_store_that_never_connected_cannot_disconnect() -> None:
    with pytest.raises(NotFound):
        rules.disconnect(StoreState(store_id="store_1"), Disconnect(NOON, "usr_1"))


def test_an_uninstall_forgets_every_credential_and_tells_the_listings() -> None:
    at = NOON + MINUTE
    decision = rules.uninstall(CONNECTED, RevokeGrant(shop_domain=SHOP, happened_at=at, at=at))

    connection = decision.state.connection
    assert connection is not None
    assert decision.reply is Outcome.APPLIED
    assert connection.status == "revoked"
    assert connection.access_token is None
    assert connection.uninstalled_at == at
    assert "Secret" not in connection.row().metadata
    assert [call for call in calls(decision) if not isinstance(call, TellPeople)] == [
        ForgetShops((SHOP,)),
        RevokeListingSources("org_1", SHOP, at),
    ]


@pytest.mark.parametrize(
    "message",
    [
        RevokeGrant(shop_domain="old.myshopify.com", happened_at=NOON + MINUTE, at=NOON + MINUTE),
        RevokeGrant(shop_domain=SHOP, happened_at=NOON - 6 * MINUTE, at=NOON + MINUTE),
        RevokeGrant(
            shop_domain=SHOP, happened_at=NOON, at=NOON + MINUTE, connected_at=NOON - MINUTE
        ),
    ],
    ids=["of another shop", "triggered before the store connected", "of a former grant"],
)
def test_a_store_keeps_its_grant_when_the_uninstall_is_not_about_it(message: RevokeGrant) -> None:
    decision = rules.uninstall(CONNECTED, message)

    assert decision.state is CONNECTED
    assert decision.reply is Outcome.IGNORED


def test_a_fresh_token_is_handed_out_without_a_commit() -> None:
    decision = tokens.use(CONNECTED, UseToken(NOON))

    assert decision.state is CONNECTED
    assert not decision.effects
    assert decision.reply == Token(
        store_id="store_1",
        shop_domain=SHOP,
        access_token="sealed token",
        expires_at=NOON + DAY,
        scopes=("read_orders",),
    )


def test_one_renewal_serves_everyone_who_asks() -> None:
    late = NOON + DAY - 10 * MINUTE
    first = tokens.use(CONNECTED, UseToken(late))
    second = tokens.use(first.state, UseToken(late + MINUTE / 2))
    much_later = tokens.use(first.state, UseToken(late + 2 * MINUTE))

    assert isinstance(first.reply, Parked)
    assert calls(first) == [RenewToken("store_1", NOON)]
    assert second.reply == first.reply
    assert not second.effects
    assert second.state is first.state
    assert calls(much_later) == [RenewToken("store_1", NOON)]


def test_a_token_that_was_found_dead_is_handed_to_nobody_until_it_is_renewed() -> None:
    found = tokens.use(CONNECTED, UseToken(NOON, "sealed token"))
    again = tokens.use(found.state, UseToken(NOON, "sealed token"))
    other = tokens.use(found.state, UseToken(NOON + MINUTE / 2))

    assert calls(found) == [RenewToken("store_1", NOON)]
    assert isinstance(found.reply, Parked)
    assert again.reply == other.reply == found.reply
    assert again.effects == other.effects == ()
    assert found.state.connection == replace(
        CONNECTED.connection or pytest.fail("connected"), token_expires_at=NOON
    )


def test_a_token_found_dead_too_late_leaves_the_one_that_took_its_place() -> None:
    decision = tokens.use(CONNECTED, UseToken(NOON, "former token"))

    assert decision.state is CONNECTED
    assert isinstance(decision.reply, Token)


def test_a_store_that_was_never_connected_says_so() -> None:
    with pytest.raises(Unavailable) as caught:
        tokens.use(StoreState(store_id="store_1"), UseToken(NOON))
    assert (caught.value.status, caught.value.code) == (503, "never_connected")


def test_a_renewal_rewrites_token_and_scopes_and_answers_who_waits() -> None:
    at = NOON + DAY
    waiting = tokens.use(CONNECTED, UseToken(at)).state
    decision = tokens.renewed(
        waiting,
        RenewalSucceeded(
            connected_at=NOON, access_token="new", scopes=(), expires_at=at + DAY, at=at
        ),
    )

    connection = decision.state.connection
    assert connection is not None
    assert (connection.access_token, connection.scopes) == ("new", ())
    assert decision.state.renewing_since is None
    assert (decision.resolve or {})["token"].access_token == "new"
    assert not rules.view(decision.state).scopes_known


def test_scopes_that_grew_are_subscribed_to() -> None:
    at = NOON + DAY
    answered = RenewalSucceeded(
        connected_at=NOON,
        access_token="new",
        scopes=("read_orders", "read_themes"),
        expires_at=at + DAY,
        at=at,
    )

    assert calls(tokens.renewed(CONNECTED, answered)) == [
        ReconcileSubscriptions("store_1", NOON, "org_1")
    ]


def test_scopes_told_before_the_last_renewal_change_nothing() -> None:
    after, effects = rules.rescope(CONNECTED, ("read_themes",), NOON - MINUTE)

    assert after is CONNECTED
    assert effects == ()


def test_a_refused_renewal_leaves_the_grant_and_is_said_once() -> None:
    refused = tokens.refused(CONNECTED, RenewalRefused(NOON, "invalid_client", NOON + DAY))
    again = tokens.refused(refused.state, RenewalRefused(NOON, "invalid_client", NOON + 2 * DAY))

    assert refused.state.connection == replace(
        CONNECTED.connection or pytest.fail("connected"), refused_at=NOON + DAY
    )
    assert refused.state.connection.status == "active"
    assert len(refused.records) == 1
    assert (refused.resolve or {})["token"].code == "token_unavailable"
    assert again.records == ()
    with pytest.raises(Unavailable) as caught:
        tokens.use(refused.state, UseToken(NOON))
    assert (caught.value.status, caught.value.code) == (503, "token_unavailable")
    assert rules.view(refused.state).token_state is TokenState.UNAVAILABLE


def test_an_unreachable_platform_changes_nothing_about_the_grant() -> None:
    waiting = tokens.use(CONNECTED, UseToken(NOON + DAY)).state
    decision = tokens.unreachable(waiting, RenewalUnreachable(NOON, NOON + DAY))

    assert decision.state == CONNECTED
    assert (decision.resolve or {})["token"].code == "commerce_unreachable"


def test_a_result_about_a_former_grant_is_dropped() -> None:
    other = RenewalSucceeded(
        connected_at=NOON - DAY, access_token="old", scopes=(), expires_at=NOON, at=NOON
    )

    assert tokens.renewed(CONNECTED, other).state is CONNECTED
    assert tokens.refused(CONNECTED, RenewalRefused(NOON - DAY, "x", NOON)).state is CONNECTED
    report = SubscriptionsReconciled(NOON - DAY, (("orders/create", "ok"),), NOON)
    assert rules.subscribed(CONNECTED, report).state is CONNECTED


def test_the_report_on_subscriptions_is_kept_for_operators() -> None:
    report = SubscriptionsReconciled(NOON, (("orders/create", "ok"),), NOON)

    assert rules.view(rules.subscribed(CONNECTED, report).state).subscriptions == (
        ("orders/create", "ok"),
    )


@pytest.mark.parametrize(
    "message",
    [
        connect(),
        RenewToken("store_1", NOON),
        RevokeGrant(shop_domain=SHOP, happened_at=NOON, at=NOON),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_wait_in_the_outbox_unchanged(message: object) -> None:
    assert decode(type(message).__name__, "store", encode(message)) == message
