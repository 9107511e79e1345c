from typing import Any

import pytest

SHOP = "demo.myshopify.com"
HOOKS = "https://hooks.example/events"
LIST = (
    "{ webhookSubscriptions(first: 250) { nodes { id topic uri format apiVersion { handle } } } }"
)


async def listed(app: Any) -> list[Any]:
    found: list[Any] = (await app.ask(LIST))["webhookSubscriptions"]["nodes"]
    return found


async def test_many_topics_are_subscribed_in_one_document(app: Any) -> None:
    data = await app.ask(
        "mutation($sub: WebhookSubscriptionInput!) {"
        " a: webhookSubscriptionCreate(topic: ORDERS_CREATE, webhookSubscription: $sub)"
        " { userErrors { message } }"
        " b: webhookSubscriptionCreate(topic: APP_UNINSTALLED, webhookSubscription: $sub)"
        " { userErrors { message } } }",
        sub={"uri": HOOKS, "format": "JSON"},
    )
    assert data == {"a": {"userErrors": []}, "b": {"userErrors": []}}
    found = await listed(app)
    assert [(s["topic"], s["uri"]) for s in found] == [
        ("ORDERS_CREATE", HOOKS),
        ("APP_UNINSTALLED", HOOKS),
    ]
    assert found[0]["apiVersion"] == {"handle": "2026-07"}


async def test_subscribing_twice_says_the_address_is_taken(app: Any) -> None:
    await app.subscribe("ORDERS_CREATE", HOOKS)
    again = await app.subscribe("ORDERS_CREATE", HOOKS)
    assert again["webhookSubscription"] is None
    assert again["userErrors"][0]["message"] == "Address for this topic has already been taken"
    assert len(await listed(app)) == 1


async def test_a_topic_beyond_the_scopes_cannot_be_subscribed(app: Any) -> None:
    app.platform.set_scopes(SHOP, "read_products")
    answer = await app.subscribe("ORDERS_CREATE", HOOKS)
    assert answer["userErrors"][0]["message"] == (
        "You cannot create a webhook subscription with the specified topic"
    )
    assert (await app.subscribe("SHOP_UPDATE", HOOKS))["userErrors"] == []


@pytest.mark.parametrize("uri", ["ftp://hooks.example/x", "nowhere", ""])
async def test_an_address_must_be_http(app: Any, uri: str) -> None:
    assert (await app.subscribe("SHOP_UPDATE", uri))["userErrors"] != []


async def test_a_subscription_moves_and_ends(app: Any) -> None:
    gid = (await app.subscribe("ORDERS_CREATE", HOOKS))["webhookSubscription"]["id"]
    moved = await app.ask(
        "mutation($id: ID!, $sub: WebhookSubscriptionInput!) {"
        " webhookSubscriptionUpdate(id: $id, webhookSubscription: $sub) {"
        " webhookSubscription { uri } userErrors { message } } }",
        id=gid,
        sub={"uri": HOOKS + "/new"},
    )
    assert moved["webhookSubscriptionUpdate"]["webhookSubscription"]["uri"] == HOOKS + "/new"
    delete = (
        "mutation($id: ID!) { webhookSubscriptionDelete(id: $id) {"
        " deletedWebhookSubscriptionId userErrors { message } } }"
    )
    first = (await app.ask(delete, id=gid))["webhookSubscriptionDelete"]
    assert first == {"deletedWebhookSubscriptionId": gid, "userErrors": []}
    second = (await app.ask(delete, id=gid))["webhookSubscriptionDelete"]
    assert second["userErrors"][0]["message"] == "Webhook subscription does not exist"


async def test_uninstalling_removes_the_subscriptions(app: Any) -> None:
    await app.subscribe("ORDERS_CREATE", HOOKS)
    app.platform.uninstall(SHOP)
    app.platform.install(SHOP)
    await app.grant()
    assert await listed(app) == []


async def test_subscriptions_are_listed_by_topic_and_address(app: Any) -> None:
    await app.subscribe("ORDERS_CREATE", HOOKS)
    await app.subscribe("ORDERS_PAID", HOOKS)
    await app.subscribe("ORDERS_PAID", HOOKS + "/other")
    data = await app.ask(
        "query($u: String) { webhookSubscriptions(first: 9, topics: [ORDERS_PAID], uri: $u) {"
        " nodes { topic uri } } webhookSubscriptionsCount { count } }",
        u=HOOKS,
    )
    assert data["webhookSubscriptions"]["nodes"] == [{"topic": "ORDERS_PAID", "uri": HOOKS}]
    assert data["webhookSubscriptionsCount"] == {"count": 3}
