"""Pulls from a platform that answers strangely: nothing doubtful may become revenue."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.clients.commerce.wire import SHOP, Asked, Says, Wire, data, wired
from tolsey.actors.ports import PlatformDenied, PlatformUnreachable
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.bulk import Lines

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)
MANY = data(ordersCount={"count": 501, "precision": "AT_LEAST"})
FEW = data(ordersCount={"count": 3, "precision": "EXACT"})


def bag(amount: Any) -> dict[str, Any]:
    return {"shopMoney": {"amount": amount}}


def node(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"gid://shopify/Order/{number}",
        "test": False,
        "processedAt": "2026-01-15T12:00:00Z",
        "createdAt": "2026-01-15T13:00:00+01:00",
        "cancelledAt": None,
        "sourceName": "web",
        "checkoutToken": "c0ffee",
        "currencyCode": "USD",
        "dutiesIncluded": False,
        "totalPriceSet": bag("10.00"),
        "currentTotalPriceSet": bag("10.00"),
        "currentTotalTaxSet": bag("0.0"),
        "currentShippingPriceSet": bag("0.0"),
        "currentTotalDutiesSet": None,
        "currentTotalAdditionalFeesSet": None,
        "totalTipReceivedSet": bag("0.0"),
        "disputes": [],
        "refunds": [],
        "transactions": [],
        **fields,
    }


def item(**fields: Any) -> dict[str, Any]:
    return {
        "isGiftCard": False,
        "sellingPlan": None,
        "priceAfterAllDiscountsBeforeTaxesSet": bag("10.00"),
        **fields,
    }


def connection(*nodes: Any, after: str | None = None) -> dict[str, Any]:
    return {
        "nodes": list(nodes),
        "pageInfo": {"hasNextPage": after is not None, "endCursor": after},
    }


def page(*nodes: dict[str, Any], after: str | None = None) -> Says:
    whole = [{"lineItems": connection(item()), **each} for each in nodes]
    return data(orders=connection(*whole, after=after))


async def pull(wire: Wire, **limits: Any) -> list[str]:
    async with wire.client(**limits) as client:
        return [each.order_id async for each in client.orders(SHOP, START, END)]


async def test_the_search_index_is_not_believed() -> None:
    odd = page(
        node(1),
        node(1),
        node(2, test=True),
        node(3, processedAt="2025-12-31T23:59:59.999Z"),
        node(4, processedAt="2026-01-31T00:00:00Z"),
        node(5, processedAt="2026-01-01T00:00:00Z"),
    )
    async with wired(FEW, odd) as wire:
        assert await pull(wire) == ["1", "5"]


async def test_pages_that_lead_in_a_circle_end_the_pull() -> None:
    async with wired(FEW, page(node(1), after="a"), page(node(2), after="a")) as wire:
        with pytest.raises(PlatformUnreachable, match="earlier"):
            await pull(wire)


async def test_pages_without_end_are_bounded() -> None:
    endless = [page(node(n), after=f"c{n}") for n in range(5)]
    async with wired(FEW, *endless) as wire:
        with pytest.raises(PlatformUnreachable, match="more orders than one request"):
            await pull(wire, pages=4)


async def test_a_page_that_costs_too_much_is_asked_for_in_halves() -> None:
    error = {"message": "Query cost is 1001", "extensions": {"code": "MAX_COST_EXCEEDED"}}
    dear = Says(body={"errors": [error]})
    async with wired(FEW, dear, dear, page(node(1))) as wire:
        assert await pull(wire) == ["1"]
        sizes = [asked.variables["first"] for asked in wire.asked[1:]]
    assert sizes == [sizes[0], sizes[0] // 2, sizes[0] // 4]


SALE = {
    "kind": "SALE",
    "status": "SUCCESS",
    "test": False,
    "manualPaymentGateway": False,
    "gateway": "shopify_payments",
    "fees": [{"id": "gid://shopify/TransactionFee/1"}],
    "amountSet": bag("10.00"),
}
STRANGE: list[Callable[[], dict[str, Any]]] = [
    lambda: node(1, id="gid://shopify/Customer/1"),
    lambda: node(1, id=1),
    lambda: node(1, processedAt="2026-01-15T12:00:00"),
    lambda: node(1, processedAt="soon"),
    lambda: node(1, processedAt=None),
    lambda: node(1, test="false"),
    lambda: node(1, test=None),
    lambda: node(1, currencyCode=None),
    lambda: node(1, totalPriceSet=bag(10)),
    lambda: node(1, totalPriceSet=bag("1e9")),
    lambda: node(1, totalPriceSet=bag("NaN")),
    lambda: node(1, totalPriceSet=bag("9" * 40)),
    lambda: node(1, totalPriceSet=None),
    lambda: node(1, transactions=None),
    lambda: node(1, transactions=[None]),
    lambda: node(1, transactions=[{"kind": "SALE"}]),
    lambda: node(1, lineItems=None),
    lambda: node(1, lineItems={"nodes": [item()]}),
    lambda: node(1, createdAt=None),
    lambda: node(1, checkoutToken=1),
    lambda: node(1, dutiesIncluded=None),
    lambda: node(1, disputes=None),
    lambda: node(1, disputes=[{}]),
    lambda: node(1, refunds=[{"id": None}]),
    lambda: node(1, totalTipReceivedSet=None),
    lambda: node(1, currentTotalTaxSet=None),
    lambda: node(1, transactions=[{**SALE, "fees": None}]),
    lambda: node(1, transactions=[{**SALE, "gateway": 1}]),
    lambda: node(1, lineItems=connection(item(isGiftCard=None))),
    lambda: node(1, lineItems=connection(item(sellingPlan="x"))),
    lambda: node(1, lineItems={"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": None}}),
]


@pytest.mark.parametrize("strange", STRANGE)
async def test_an_order_that_is_not_readable_stops_the_pull(
    strange: Callable[[], dict[str, Any]],
) -> None:
    async with wired(FEW, page(strange())) as wire:
        with pytest.raises(PlatformUnreachable, match="malformed"):
            await pull(wire)


def test_an_id_beyond_what_a_double_holds_stays_exact() -> None:
    assert shapes.number_of("gid://shopify/Order/820982911946154508", "Order") == 820982911946154508


def test_a_time_in_any_zone_is_kept_as_utc() -> None:
    assert shapes.moment("2026-01-15T13:00:00+01:00", "x") == datetime(2026, 1, 15, 12, tzinfo=UTC)
    assert shapes.moment("2026-01-15T12:00:00.5Z", "x").utcoffset() is not None


def test_a_plan_that_is_gone_is_known_by_its_name() -> None:
    gone = item(sellingPlan={"sellingPlanId": None, "name": "Monthly"})
    assert shapes.line(gone).selling_plan == "Monthly"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=20,
    )
)
def test_no_json_makes_an_order_or_anything_but_a_misshapen_answer(value: Any) -> None:
    with pytest.raises(PlatformUnreachable):
        shapes.order(shapes.mapping(value, "an order"), (), ())


def started(**operation: Any) -> Says:
    return data(
        bulkOperationRunQuery={
            "bulkOperation": {"id": "gid://shopify/BulkOperation/9", "status": "CREATED"},
            "userErrors": [],
            **operation,
        }
    )


def completed(wire: Wire, roots: int, **fields: Any) -> Says:
    return data(
        bulkOperation={
            "id": "gid://shopify/BulkOperation/9",
            "status": "COMPLETED",
            "errorCode": None,
            "rootObjectCount": str(roots),
            "fileSize": "100",
            "url": wire.url + "/storage/result.jsonl?signature=x",
            **fields,
        }
    )


def jsonl(*lines: dict[str, Any]) -> Says:
    return Says(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def child(parent: int, **fields: Any) -> dict[str, Any]:
    return item(__parentId=f"gid://shopify/Order/{parent}", **fields)


async def bulk(file: Says, *, roots: int = 0, **fields: Any) -> tuple[dict[str, int], Wire]:
    async with wired(MANY, started()) as wire:
        wire.script += [completed(wire, roots, **fields), file, file, file]
        async with wire.client(bulk_line_bytes=2_000, bulk_file_bytes=100_000) as client:
            orders = [each async for each in client.orders(SHOP, START, END)]
        return {each.order_id: len(each.lines) for each in orders}, wire


async def test_lines_far_from_their_order_still_belong_to_it() -> None:
    file = jsonl(node(1), node(2), node(3), child(2), child(1), child(2), node(4), child(1))
    assert (await bulk(file, roots=4))[0] == {"1": 2, "2": 2, "3": 0, "4": 0}


async def test_a_file_without_a_last_newline_or_with_empty_lines_is_read() -> None:
    body = json.dumps(node(1)).encode() + b"\n\n\r\n" + json.dumps(child(1)).encode()
    assert (await bulk(Says(200, body), roots=1))[0] == {"1": 1}


async def test_the_token_is_not_sent_to_where_the_file_lies() -> None:
    _, wire = await bulk(jsonl(node(1)), roots=1)
    download = wire.asked[-1]
    assert download.method == "GET"
    assert download.path == "/storage/result.jsonl?signature=x"
    assert "shpat_canary" not in repr(download)


@pytest.mark.parametrize(
    "file",
    [
        jsonl(child(1), node(1)),
        jsonl(node(1), node(1)),
        jsonl(node(1), {"id": "gid://shopify/Refund/1"}),
        jsonl(node(1), child(1, isGiftCard=None)),
        Says(200, b"[]\n"),
        Says(200, b'{"id": "gid://shopify/Ord'),
        Says(200, b"\xff\xfe\n"),
        Says(200, b" " * 50_000),
        Says(200, (json.dumps(node(1)) + "\n").encode() * 2),
    ],
)
async def test_a_file_that_is_not_readable_gives_no_order(file: Says) -> None:
    with pytest.raises(PlatformUnreachable, match="malformed"):
        await bulk(file, roots=1)


async def test_a_file_shorter_than_announced_gives_no_order() -> None:
    with pytest.raises(PlatformUnreachable, match="shorter"):
        await bulk(jsonl(node(1)), roots=2)


async def test_a_file_larger_than_the_service_reads_is_not_downloaded_or_cut_off() -> None:
    with pytest.raises(PlatformUnreachable, match="larger"):
        await bulk(jsonl(node(1)), roots=1, fileSize="100001")
    long = [node(n, sourceName="x" * 1_000) for n in range(120)]
    with pytest.raises(PlatformUnreachable, match="larger"):
        await bulk(jsonl(*long), roots=120)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://storage.example/x",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "https://user:secret@storage.example/x",
        "https://[::1/x",
        "https:///x",
        "https://storage.example\\@127.0.0.1/x",
        "https://stor\x00age.example/x",
    ],
)
async def test_a_file_at_a_doubtful_address_is_not_fetched(url: str) -> None:
    with pytest.raises(PlatformUnreachable, match="isn't allowed"):
        await bulk(jsonl(node(1)), roots=1, url=url)


@pytest.mark.parametrize("url", ["https://10.0.0.1/x", "https://8.8.8.8:8443/x", "https://[::1]/"])
async def test_a_file_at_a_private_address_or_odd_port_is_not_fetched_even_by_https(
    url: str,
) -> None:
    with pytest.raises(PlatformUnreachable, match="resolves to a private address"):
        await bulk(jsonl(node(1)), roots=1, url=url)


async def test_an_expired_file_is_given_up_and_a_redirect_not_followed() -> None:
    with pytest.raises(PlatformUnreachable, match="403"):
        await bulk(Says(403, b""), roots=1)
    away = Says(302, b"", {"Location": "http://169.254.169.254/"})
    with pytest.raises(PlatformUnreachable, match="302"):
        await bulk(away, roots=1)


async def test_an_export_that_counts_orders_and_names_no_file_is_not_an_empty_one() -> None:
    with pytest.raises(PlatformUnreachable, match="without a file"):
        await bulk(jsonl(), roots=3, url=None)


@pytest.mark.parametrize("status", ["FAILED", "CANCELED", "EXPIRED", "WHATEVER", None])
async def test_an_export_that_ends_otherwise_is_unreachable(status: str | None) -> None:
    with pytest.raises(PlatformUnreachable, match="ended with the status"):
        await bulk(jsonl(), status=status)


async def test_an_export_without_the_permission_is_a_refusal() -> None:
    with pytest.raises(PlatformDenied):
        await bulk(jsonl(), status="FAILED", errorCode="ACCESS_DENIED")


async def test_an_export_the_platform_does_not_accept_is_a_refusal() -> None:
    error = {"field": ["query"], "message": "Invalid bulk query", "code": "INVALID"}
    async with wired(MANY, started(bulkOperation=None, userErrors=[error])) as wire:
        with pytest.raises(PlatformDenied, match="Invalid bulk query"):
            await pull(wire)


async def test_an_export_that_is_always_running_is_given_up_with_growing_waits() -> None:
    def running(_: Asked) -> Says:
        return data(bulkOperation={"id": "x", "status": "RUNNING", "rootObjectCount": "0"})

    async with wired(MANY, started(), *[running] * 50) as wire:
        with pytest.raises(PlatformUnreachable, match="too long"):
            await pull(wire, bulk_polls=10)
        assert wire.time.waits == [0.1 * 1.25**n for n in range(10)]


async def test_another_export_that_never_ends_is_not_awaited_for_ever() -> None:
    error = {"message": "A bulk query operation is already in progress", "code": None}
    busy = started(bulkOperation=None, userErrors=[error])
    async with wired(MANY, *[busy] * 9) as wire:
        with pytest.raises(PlatformUnreachable, match="already in progress"):
            await pull(wire, bulk_polls=5)


async def test_a_lost_answer_to_the_start_does_not_start_a_second_export() -> None:
    async with wired(MANY, Says(raw=b"")) as wire:
        with pytest.raises(PlatformUnreachable):
            await pull(wire)
        assert len(wire.asked) == 2


@given(st.lists(st.text("ab \n", max_size=30)), st.integers(1, 7))
def test_lines_are_the_same_however_the_file_is_cut(texts: list[str], step: int) -> None:
    whole = "\n".join(texts).encode()
    lines = Lines(1_000)
    found: list[bytes] = []
    for at in range(0, len(whole), step):
        found += lines.feed(whole[at : at + step])
    found += lines.rest()
    assert found == [line for line in whole.split(b"\n") if line.strip()]


def test_money_is_exact() -> None:
    assert shapes.money(bag("0.1"), "x") + shapes.money(bag("0.2"), "x") == Decimal("0.3")
    assert shapes.money(bag("-1.50"), "x") == Decimal("-1.5")
