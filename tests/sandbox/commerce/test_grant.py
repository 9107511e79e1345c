from typing import Any

import pytest

from tolsey.sandbox.commerce.shop.state import ShopSpec

OTHER = "other.myshopify.com"


async def test_a_grant_answers_a_token_its_scopes_and_its_lifetime(app: Any) -> None:
    answer = (await app.grant()).json()
    assert answer["access_token"].startswith("shpat_")
    assert answer["expires_in"] == 86_399
    assert answer["scope"].split(",") == list(app.platform.shop(app.shop).scopes)


async def test_a_grant_may_be_asked_in_json(app: Any) -> None:
    answer = await app.client.post(
        f"/{app.shop}/admin/oauth/access_token",
        json={
            "grant_type": "client_credentials",
            "client_id": "sandbox-client",
            "client_secret": "sandbox-secret",
        },
        headers={"accept": "application/json"},
    )
    assert answer.status_code == 200


async def test_a_wrong_secret_is_an_invalid_client(app: Any) -> None:
    answer = await app.grant(client_secret="wrong")
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_client"


async def test_an_unknown_key_is_refused_in_plain_text(app: Any) -> None:
    answer = await app.grant(client_id="nobody")
    assert answer.status_code == 400
    assert answer.text.startswith("Oauth error invalid_request: Could not find Shopify API")


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (ShopSpec(domain=OTHER, installed=False), "app_not_installed"),
        (ShopSpec(domain=OTHER, permitted=False), "shop_not_permitted"),
        (ShopSpec(domain=OTHER, client_id="another-client"), "app_not_installed"),
    ],
)
async def test_a_shop_without_the_app_refuses_the_grant(
    app: Any, spec: ShopSpec, code: str
) -> None:
    app.platform.add_shop(spec)
    app.shop = OTHER
    answer = await app.grant()
    assert answer.status_code == 400
    assert answer.json()["error"] == code


async def test_errors_come_as_a_page_unless_json_was_asked_for(app: Any) -> None:
    answer = await app.grant(accept="*/*", client_secret="wrong")
    assert answer.status_code == 400
    assert "<title>Oauth error invalid_client" in answer.text


async def test_an_unknown_shop_is_a_page_not_found(app: Any) -> None:
    app.shop = "nobody.myshopify.com"
    answer = await app.grant()
    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]


async def test_a_token_dies_after_its_lifetime(app: Any) -> None:
    assert (await app.post("{ shop { id } }")).status_code == 200
    app.platform.advance(86_400)
    answer = await app.post("{ shop { id } }")
    assert answer.status_code == 401
    assert answer.json()["errors"].startswith("[API] Invalid API key or access token")


async def test_a_rotated_secret_replaces_the_old_one(app: Any) -> None:
    app.platform.rotate_secret(app.shop, "fresh")
    assert (await app.grant()).json()["error"] == "invalid_client"
    assert (await app.grant(client_secret="fresh")).status_code == 200


async def test_during_a_rotation_both_secrets_work_and_the_old_one_signs(app: Any) -> None:
    app.platform.rotate_secret(app.shop, "fresh", keep_old=True)
    assert (await app.grant()).status_code == 200
    assert (await app.grant(client_secret="fresh")).status_code == 200
    assert app.platform.shop(app.shop).signing_secret == "sandbox-secret"


async def test_uninstalling_kills_the_token_and_the_grant(app: Any) -> None:
    app.platform.uninstall(app.shop)
    assert (await app.post("{ shop { id } }")).status_code == 401
    assert (await app.grant()).json()["error"] == "app_not_installed"
    app.platform.install(app.shop)
    assert (await app.grant()).status_code == 200


async def test_a_frozen_shop_answers_402(app: Any) -> None:
    app.platform.freeze(app.shop)
    assert (await app.post("{ shop { id } }")).status_code == 402


async def test_rest_tells_the_plan_name_and_the_scopes(app: Any) -> None:
    headers = {"X-Shopify-Access-Token": app.token}
    shop = await app.client.get(f"/{app.shop}/admin/api/2026-07/shop.json", headers=headers)
    assert shop.json()["shop"]["plan_name"] == "basic"
    scopes = await app.client.get(f"/{app.shop}/admin/oauth/access_scopes.json", headers=headers)
    assert {"handle": "read_orders"} in scopes.json()["access_scopes"]
    unsupported = await app.client.get(f"/{app.shop}/admin/api/1999-01/shop.json", headers=headers)
    assert unsupported.status_code == 404
