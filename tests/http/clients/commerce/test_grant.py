from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.golden.cases import golden
from tests.http.clients.commerce.wire import Says, wired
from tolsey.actors.ports import GrantRefused, PlatformUnreachable, TokenGrant
from tolsey.http.clients.commerce.answers import plain, scopes_of

DEMO = ("demo.myshopify.com", "an-id", "shpss_canary")
MINTED = {"access_token": "shpat_x", "scope": "write_orders, read_customers,", "expires_in": 86399}


def documented(case: str) -> dict[str, Any]:
    seen: dict[str, Any] = golden("commerce/oauth/client_credentials_cases.json")[case]
    return seen


async def refused(says: Says) -> GrantRefused:
    async with wired(says) as wire, wire.client() as client:
        with pytest.raises(GrantRefused) as caught:
            await client.exchange(*DEMO)
        assert len(wire.asked) == 1
        return caught.value


async def test_a_grant_is_asked_for_with_a_form_and_wants_json() -> None:
    async with wired(Says(body=MINTED)) as wire, wire.client() as client:
        grant = await client.exchange(*DEMO)
    assert grant == TokenGrant("shpat_x", ("write_orders", "read_customers"), 86399)
    asked = wire.asked[0]
    assert asked.path == "/demo.myshopify.com/admin/oauth/access_token"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["accept"] == "application/json"
    assert parse_qs(asked.body.decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["an-id"],
        "client_secret": ["shpss_canary"],
    }


async def test_neither_a_grant_nor_a_shop_shows_its_token() -> None:
    assert "shpat_x" not in repr(TokenGrant("shpat_x", (), 1))


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("app_not_installed", "app_not_installed"),
        ("app_not_installed_html", "app_not_installed"),
        ("shop_not_permitted", "shop_not_permitted"),
        ("invalid_client", "invalid_client"),
        ("unknown_api_key", "invalid_request"),
        ("missing_permission", "missing_shopify_permission"),
    ],
)
async def test_every_documented_refusal_is_permanent_and_keeps_the_platforms_words(
    case: str, code: str
) -> None:
    seen = documented(case)
    body = seen.get("json") or seen["text"].encode()
    error = await refused(Says(seen["status"], body))
    assert error.code == code
    words = seen["json"]["error_description"] if "json" in seen else seen["text"].partition(": ")[2]
    assert error.message == words


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "unauthorized"), (404, "shop_not_found"), (402, "shop_frozen"), (423, "refused_423")],
)
async def test_a_page_without_a_code_is_judged_by_its_status(status: int, code: str) -> None:
    error = await refused(Says(status, b"<html><title>x</title></html>"))
    assert error.code == code


async def test_a_known_code_is_permanent_whatever_its_status() -> None:
    error = await refused(Says(503, {"error": "invalid_client", "error_description": "Gone"}))
    assert (error.code, error.message) == ("invalid_client", "Gone")


async def test_a_refusal_comes_without_markup_control_characters_or_our_secret() -> None:
    words = "<b>No</b>\x00\x1b[31m &lt;script&gt;shpss_canary \u202e" + "x" * 999
    error = await refused(Says(400, {"error": "invalid_client", "error_description": words}))
    assert error.message.startswith("No [31m script… x")
    assert len(error.message) <= 300
    assert error.message.isprintable()


@pytest.mark.parametrize(
    "trouble",
    [
        Says(500, b"oops"),
        Says(429, {"errors": "slow down"}, {"Retry-After": "2.0"}),
        Says(503, {"error": "temporarily_unavailable"}),
        Says(200, b"<html>"),
        Says(200, {"scope": "read_orders"}),
        Says(200, {"access_token": "a b\r\n", "scope": ""}),
        Says(raw=b""),
        Says(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"),
    ],
)
async def test_passing_trouble_is_tried_again(trouble: Says) -> None:
    async with wired(trouble, Says(body=MINTED)) as wire, wire.client() as client:
        assert (await client.exchange(*DEMO)).access_token == "shpat_x"
        assert len(wire.asked) == 2


async def test_a_fractional_retry_after_is_waited_out() -> None:
    slow = Says(429, {"errors": "slow down"}, {"Retry-After": "2.5"})
    async with wired(slow, Says(body=MINTED)) as wire, wire.client() as client:
        await client.exchange(*DEMO)
        assert wire.time.waits == [2.5]


async def test_lasting_trouble_is_given_up_as_unreachable_and_not_as_refused() -> None:
    async with wired(*[Says(502, b"bad gateway")] * 3) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable):
            await client.exchange(*DEMO)
        assert len(wire.asked) == 3
        assert wire.time.waits == [0.5, 1.0]


async def test_a_redirect_is_not_followed() -> None:
    away = Says(302, b"", {"Location": "http://169.254.169.254/"})
    async with wired(away) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable, match="302"):
            await client.exchange(*DEMO)
        assert len(wire.asked) == 1


async def test_an_endless_answer_is_cut_off() -> None:
    async with wired(Says(200, b"x" * 70_000)) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable, match="exceeds 65536 bytes"):
            await client.exchange(*DEMO)


async def test_a_platform_that_accepts_and_says_nothing_is_unreachable() -> None:
    async with (
        wired(Says(stall=True)) as wire,
        wire.client(attempt_seconds=0.05, grant_attempts=1) as client,
    ):
        with pytest.raises(PlatformUnreachable):
            await client.exchange(*DEMO)


@pytest.mark.parametrize(
    ("said", "meant"),
    [(None, 3600), (0, 3600), ("60", 3600), (True, 3600), (30, 30), (10**12, 366 * 86_400)],
)
async def test_a_life_that_makes_no_sense_is_taken_as_an_hour(said: Any, meant: int) -> None:
    body = {"access_token": "shpat_x", "scope": "", "expires_in": said}
    async with wired(Says(body=body)) as wire, wire.client() as client:
        assert await client.exchange(*DEMO) == TokenGrant("shpat_x", (), meant)


@pytest.mark.parametrize("domain", ["evil.example", "demo.myshopify.com/x", "Demo.myshopify.com"])
async def test_only_a_normalised_shop_is_called(domain: str) -> None:
    async with wired() as wire, wire.client() as client:
        with pytest.raises(ValueError, match="not normalized"):
            await client.exchange(domain, "id", "secret")


def test_scopes_are_split_and_trimmed_and_none_is_unknown() -> None:
    assert scopes_of(" write_orders ,read_products,,write_orders") == (
        "write_orders",
        "read_products",
    )
    assert scopes_of("") == scopes_of(" , ") == ()


def test_plain_words_take_time_in_proportion_to_their_length() -> None:
    assert plain("<" * 100_000 + ">" * 100_000) == ""
    assert plain("&lt;" * 5_000) == ""
