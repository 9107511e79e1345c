import contextlib
import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.cases import golden
from tests.http.clients.commerce.wire import SHOP, Asked, Says, cost, data, throttled, wired
from tolsey.actors.ports import (
    PlatformDenied,
    PlatformError,
    PlatformThrottled,
    PlatformUnreachable,
    QueryTooCostly,
)
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.clients.commerce.answers import (
    GraphqlAnswer,
    read_answer,
    read_body,
    read_grant,
)
from tolsey.http.clients.commerce.bodies import PlatformReply, TransientFault
from tolsey.http.clients.commerce.costs import read_cost
from tolsey.http.clients.decoding import retry_after

QUERY = "query Name { shop { name } }"
MUTATION = 'mutation Go { bulkOperationRunQuery(query: "{}", groupObjects: false) { userErrors { message } } }'


def documented(case: str) -> dict[str, Any]:
    seen: dict[str, Any] = golden("commerce/graphql/error_cases.json")[case]
    return seen


GOOD = data(shop={"name": "Demo"})


async def test_a_query_goes_out_with_its_token_and_version() -> None:
    async with wired(GOOD) as wire, wire.client() as client:
        assert await client.graphql(SHOP, QUERY, {"a": 1}) == {"shop": {"name": "Demo"}}
    asked = wire.asked[0]
    assert asked.path == "/demo.myshopify.com/admin/api/2026-07/graphql.json"
    assert asked.headers["x-shopify-access-token"] == "shpat_canary"
    assert json.loads(asked.body) == {"query": QUERY, "variables": {"a": 1}}


async def test_throttling_inside_a_200_is_waited_out_for_as_long_as_the_points_need() -> None:
    async with wired(throttled(752, 666), GOOD) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        assert wire.time.waits == [pytest.approx((752 - 666) / 50)]


async def test_what_a_query_cost_last_time_is_awaited_before_it_is_sent_again() -> None:
    def dear(_: Asked) -> Says:
        return Says(body={"data": {}, "extensions": cost(400, 100)})

    async with wired(dear, dear) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        await client.graphql(SHOP, QUERY)
        assert wire.time.waits == [pytest.approx((400 - 100) / 50)]


async def test_one_shops_empty_bucket_does_not_hold_up_another() -> None:
    empty = Says(body={"data": {}, "extensions": cost(900, 0)})
    async with wired(empty, empty) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        other = type(SHOP)("other.myshopify.com", "shpat_other")
        await client.graphql(other, QUERY)
        assert wire.time.waits == []


async def test_throttling_without_end_is_given_up() -> None:
    script = [throttled(752, 666)] * 200
    async with wired(*script) as wire, wire.client() as client:
        with pytest.raises(PlatformThrottled, match="limiting requests") as caught:
            await client.graphql(SHOP, QUERY)
        assert len(wire.asked) <= 61
        assert caught.value.retry_after == pytest.approx(1.72)


async def test_a_query_dearer_than_the_whole_bucket_is_not_repeated() -> None:
    async with wired(throttled(1200, 1000)) as wire, wire.client() as client:
        with pytest.raises(QueryTooCostly, match="1,200 points, and at most 1,000"):
            await client.graphql(SHOP, QUERY)


def too_costly(points: int) -> Says:
    error = {
        "message": f"Query cost is {points}, which exceeds the single query max cost limit (1000).",
        "extensions": {"code": "MAX_COST_EXCEEDED", "cost": points, "maxCost": 1000},
    }
    return Says(body={"errors": [error]})


LARGE = "query Large { products(first: 250) { nodes { variants(first: 100) { nodes { id } } } } }"
FULL = Says(body={"data": {}, "extensions": cost(1, 2000, rate=100, maximum=2000)})
UNSPENT = [
    too_costly(26_252),
    Says(401, {"errors": "[API] Invalid API key or access token"}),
    Says(402, {"errors": "Unavailable Shop"}),
    Says(403, {"errors": "[API] This action requires merchant approval for read_orders scope."}),
    Says(404, b"<html>"),
    Says(423, b""),
    Says(430, b""),
    Says(429, b"", {"Retry-After": "500"}),
    Says(301, b"", {"Location": "https://other.example/"}),
    Says(500, b"oops"),
    Says(503, {"errors": "down"}),
    Says(200, b"<html>not JSON</html>"),
    Says(200, {"errors": [{"message": "Field 'nope' doesn't exist on type 'Shop'"}]}),
    Says(200, {"errors": [{"message": "x", "extensions": {"code": "ACCESS_DENIED"}}]}),
    Says(200, {"errors": [{"message": "x", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}),
    Says(200, {"errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]}),
]


@pytest.mark.parametrize("answer", UNSPENT)
async def test_an_answer_without_a_throttle_status_returns_the_reserved_points(
    answer: Says,
) -> None:
    async with wired(FULL, *[answer] * 61) as wire, wire.client(throttled_attempts=2) as client:
        await client.graphql(SHOP, QUERY)
        with pytest.raises(PlatformError):
            await client.graphql(SHOP, LARGE)
        wire.script[:] = [GOOD] * 2
        wire.time.waits.clear()
        await client.graphql(SHOP, "{ products(first: 250) { nodes { seo { title } } } }")
        await client.graphql(SHOP, "{ orders(first: 250) { nodes { lineItems { id } } } }")
        assert wire.time.waits == []


async def test_a_refusal_that_states_a_cost_corrects_the_view_of_the_budget() -> None:
    denied = {"message": "no", "path": ["orders"], "extensions": {"code": "ACCESS_DENIED"}}
    body = {"errors": [denied], "extensions": cost(10, 990)}
    async with wired(FULL, Says(body=body), GOOD) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        with pytest.raises(PlatformDenied):
            await client.graphql(SHOP, QUERY)
        large = (
            "{ products(first: 250) { nodes { seo { title } options { id } category { id } } } }"
        )
        await client.graphql(SHOP, large)
        assert wire.time.waits == [pytest.approx((1000 - 990) / 50)]


@pytest.mark.parametrize("lost", [Says(raw=b""), Says(raw=b"HTTP/1.1 200 OK\r\n")])
async def test_lost_answers_delay_nobody_longer_than_the_bucket_takes_to_fill(lost: Says) -> None:
    async with wired(FULL, *[lost] * 15, GOOD) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        for _ in range(3):
            with pytest.raises(PlatformUnreachable):
                await client.graphql(SHOP, LARGE)
        wire.time.waits.clear()
        await client.graphql(SHOP, LARGE)
        assert sum(wire.time.waits) <= 2000 / 100


async def test_requests_that_never_left_cost_nothing() -> None:
    async with wired(FULL) as wire:
        client = wire.client()
        await client.graphql(SHOP, QUERY)
    async with client:
        with pytest.raises(PlatformUnreachable, match="unreachable"):
            await client.graphql(SHOP, LARGE)
    assert wire.time.waits == [0.5, 1.0, 2.0, 4.0]


async def test_throttling_with_absurd_figures_is_waited_out_for_one_filling_at_most() -> None:
    async with wired(throttled(752, -90_000), GOOD) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        assert wire.time.waits == [pytest.approx(752 / 50)]


async def test_a_query_that_is_too_costly_is_refused_with_figures_and_was_not_run() -> None:
    async with wired(too_costly(26_252)) as wire, wire.client() as client:
        with pytest.raises(QueryTooCostly) as caught:
            await client.graphql(SHOP, LARGE)
    assert "26,252 points" in caught.value.message
    assert "at most 1,000" in caught.value.message
    assert (caught.value.cost, caught.value.limit) == (26_252, 1_000)
    assert not caught.value.maybe_done


async def test_a_query_that_costs_too_much_by_any_count_is_not_sent() -> None:
    nested = "{ products(first: 250) { nodes " * 5 + "{ id }" + " } }" * 5
    async with wired() as wire, wire.client() as client:
        with pytest.raises(QueryTooCostly, match="at least"):
            await client.graphql(SHOP, nested)
        assert wire.asked == []


async def test_the_own_budget_says_how_long_it_is_used_up() -> None:
    empty = Says(body={"data": {}, "extensions": cost(900, 0)})
    async with wired(empty) as wire, wire.client(deadline_seconds=5) as client:
        await client.graphql(SHOP, QUERY)
        with pytest.raises(PlatformThrottled, match="request limit") as caught:
            await client.graphql(SHOP, QUERY)
    assert caught.value.retry_after == pytest.approx(900 / 50)


async def test_a_429_is_waited_out_by_its_fractional_retry_after() -> None:
    busy = Says(429, {"errors": "Exceeded 2 calls per second"}, {"Retry-After": "2.0"})
    async with wired(busy, busy, GOOD) as wire, wire.client() as client:
        await client.graphql(SHOP, QUERY)
        assert wire.time.waits == [2.0, 2.0]


@pytest.mark.parametrize(
    "said", ["", "soon", "-1", "nan", "inf", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT"]
)
def test_a_retry_after_that_is_no_number_is_not_believed(said: str) -> None:
    assert retry_after({"retry-after": said}) is None


def test_a_retry_after_beyond_reason_is_cut() -> None:
    assert retry_after({"retry-after": " 999999 "}) == 600.0


async def test_a_wait_beyond_the_deadline_is_given_up_at_once() -> None:
    busy = Says(429, b"", {"Retry-After": "500"})
    async with wired(busy) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable) as caught:
            await client.graphql(SHOP, QUERY)
        assert caught.value.retry_after == 500.0
        assert wire.time.waits == []


TROUBLES = [
    Says(500, b"oops"),
    Says(503, {"errors": "down"}),
    Says(200, b"<html>garbage</html>"),
    Says(200, b"[1, 2]"),
    Says(200, b'{"data": null}'),
    Says(200, b'{"data": {"a": NaN}}'),
    Says(200, {"errors": [{"message": "x", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}),
    Says(raw=b""),
    Says(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"),
    Says(raw=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nnope!"),
    Says(200, gzip.compress(b'{"data": {}}')[:-6], {"Content-Encoding": "gzip"}),
    Says(200, b"{}", {"Content-Encoding": "br"}),
    Says(raw=b"not http at all\r\n\r\n"),
]


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_query_is_sent_again_after_trouble_with_growing_waits(trouble: Says) -> None:
    async with wired(trouble, trouble, GOOD) as wire, wire.client() as client:
        assert await client.graphql(SHOP, QUERY) == {"shop": {"name": "Demo"}}
        assert wire.time.waits == [0.5, 1.0]


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_mutation_whose_answer_was_lost_is_not_sent_again(trouble: Says) -> None:
    async with wired(trouble) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable):
            await client.graphql(SHOP, MUTATION)
        assert len(wire.asked) == 1


async def test_a_mutation_that_does_no_harm_twice_is_sent_again() -> None:
    async with wired(Says(502, b""), data(ok=None)) as wire, wire.client() as client:
        assert await client.graphql(SHOP, MUTATION, repeatable=True) == {"ok": None}


@pytest.mark.parametrize("refusal", [throttled(752, 666), Says(429, b"")])
async def test_a_mutation_that_was_turned_away_before_it_ran_is_sent_again(refusal: Says) -> None:
    async with wired(refusal, data(ok=None)) as wire, wire.client() as client:
        assert await client.graphql(SHOP, MUTATION) == {"ok": None}


async def test_trouble_that_lasts_is_given_up_after_bounded_attempts() -> None:
    async with wired(*[Says(500, b"")] * 5) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable):
            await client.graphql(SHOP, QUERY)
        assert wire.time.waits == [0.5, 1.0, 2.0, 4.0]


async def test_nobody_listening_is_unreachable_even_for_a_mutation_after_retries() -> None:
    async with wired() as wire:
        waits = wire.time
    client = ShopifyAdmin(
        wire.url + "/{shop}", clock=lambda: waits.now, sleep=waits.sleep, luck=lambda: 1.0
    )
    async with client:
        with pytest.raises(PlatformUnreachable, match="is unreachable"):
            await client.graphql(SHOP, MUTATION)
    assert len(waits.waits) == 4


async def test_a_platform_at_a_private_address_is_not_called_at_all() -> None:
    async with ShopifyAdmin("https://10.0.0.1") as client:
        with pytest.raises(PlatformUnreachable, match="resolves to a private address"):
            await client.graphql(SHOP, QUERY)


@pytest.mark.parametrize(
    ("case", "status", "scope"),
    [
        ("invalid_token", 401, None),
        ("scope_missing_rest", 403, "read_orders"),
        ("shop_frozen", 402, None),
    ],
)
async def test_every_documented_refusal_keeps_its_status_and_words(
    case: str, status: int, scope: str | None
) -> None:
    seen = documented(case)
    async with wired(Says(seen["status"], seen["json"])) as wire, wire.client() as client:
        with pytest.raises(PlatformDenied) as caught:
            await client.graphql(SHOP, QUERY)
    assert (caught.value.status, caught.value.missing_scope) == (status, scope)
    assert caught.value.message == seen["json"]["errors"]


@pytest.mark.parametrize("status", [404, 423])
async def test_a_shop_that_is_gone_or_locked_is_a_refusal(status: int) -> None:
    async with wired(Says(status, b"<html>")) as wire, wire.client() as client:
        with pytest.raises(PlatformDenied) as caught:
            await client.graphql(SHOP, QUERY)
    assert caught.value.status == status


async def test_a_missing_permission_inside_a_200_names_the_scope() -> None:
    error = {
        "message": "Access denied for orders field. Required access: `read_orders` access scope.",
        "path": ["orders"],
        "extensions": {"code": "ACCESS_DENIED", "requiredAccess": "`read_orders` access scope."},
    }
    async with (
        wired(Says(body={"data": {"orders": None}, "errors": [error]})) as wire,
        wire.client() as client,
    ):
        with pytest.raises(PlatformDenied) as caught:
            await client.graphql(SHOP, QUERY)
    assert (caught.value.status, caught.value.missing_scope) == (403, "read_orders")


async def test_a_document_the_platform_does_not_accept_is_not_repeated() -> None:
    error = {"message": "Field 'nope' doesn't exist on type 'Shop'"}
    async with wired(Says(body={"errors": [error]})) as wire, wire.client() as client:
        with pytest.raises(PlatformDenied, match="nope") as caught:
            await client.graphql(SHOP, QUERY)
    assert caught.value.status == 400


async def test_a_redirect_of_the_api_is_not_followed() -> None:
    away = Says(301, b"", {"Location": "https://evil.example/"})
    async with wired(away) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable, match="301"):
            await client.graphql(SHOP, QUERY)


@pytest.mark.parametrize("wbits", [31, 15])
async def test_a_compressed_answer_is_read(wbits: int) -> None:
    squeeze = zlib.compressobj(wbits=wbits)
    body = squeeze.compress(b'{"data": {"shop": null}}') + squeeze.flush()
    encoding = {31: "gzip", 15: "deflate"}[wbits]
    says = Says(200, body, {"Content-Encoding": encoding})
    async with wired(says) as wire, wire.client() as client:
        assert await client.graphql(SHOP, QUERY) == {"shop": None}


async def test_a_bomb_is_cut_off_at_the_bound_however_small_it_travels() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    says = Says(200, bomb, {"Content-Encoding": "gzip"})
    async with wired(says) as wire, wire.client(body_bytes=100_000) as client:
        with pytest.raises(PlatformUnreachable, match="exceeds 100000 bytes"):
            await client.graphql(SHOP, QUERY)


@pytest.mark.parametrize(
    "template",
    [
        "http://{shop}",
        "ftp://{shop}",
        "https://user:secret@{shop}",
        "https://{shop}/?x=1",
        "{shop}",
        "http://10.0.0.1/{shop}",
    ],
)
def test_a_template_that_is_neither_secure_nor_local_stops_the_start(template: str) -> None:
    with pytest.raises(ValueError, match="template"):
        ShopifyAdmin(template)


@pytest.mark.parametrize("version", ["2026-7", "../../x", "2026-02", ""])
def test_a_version_that_is_none_stops_the_start(version: str) -> None:
    with pytest.raises(ValueError, match="version"):
        ShopifyAdmin(api_version=version)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "data",
                    "errors",
                    "extensions",
                    "cost",
                    "message",
                    "code",
                    "path",
                    "error",
                    "throttleStatus",
                    "requestedQueryCost",
                    "access_token",
                    "scope",
                    "expires_in",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def read_graphql(reply: PlatformReply) -> GraphqlAnswer:
    body = read_body(reply)
    return read_answer(reply, body, read_cost(body.get("extensions")))


@given(st.sampled_from([200, 201, 302, 400, 401, 403, 429, 500, 599]), JSON)
def test_no_answer_surprises_the_reader(status: int, body: Any) -> None:
    reply = PlatformReply(status, {}, json.dumps(body).encode())
    for read in (read_graphql, read_grant):
        with contextlib.suppress(PlatformError, TransientFault):
            read(reply)


@given(st.binary(max_size=200))
def test_no_bytes_surprise_the_reader(body: bytes) -> None:
    for read in (read_graphql, read_grant):
        # some bytes are JSON, and then an answer
        with contextlib.suppress(PlatformError, TransientFault):
            read(PlatformReply(200, {}, body))
