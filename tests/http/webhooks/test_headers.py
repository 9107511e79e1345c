"""Which family of header names a delivery is read from."""

import base64
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.http.webhooks.headers import (
    FAMILIES,
    NOTHING,
    HeaderReader,
    HeadersDisagree,
    digest_of,
)

READER = HeaderReader()
Lines = list[tuple[bytes, bytes]]


def lines(family: bytes, **values: str) -> Lines:
    return [
        (family + name.replace("_", "-").encode(), text.encode()) for name, text in values.items()
    ]


def whole(family: bytes, hmac: str = "S", shop: str = "a.myshopify.com") -> Lines:
    return lines(family, hmac_sha256=hmac, shop_domain=shop, topic="orders/create", webhook_id="1")


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_says_the_same(family: bytes) -> None:
    said = READER.read(whole(family))

    assert (said.signature, said.shop_domain, said.topic, said.webhook_id) == (
        b"S",
        b"a.myshopify.com",
        b"orders/create",
        b"1",
    )


@pytest.mark.parametrize(("one", "other"), list(permutations(FAMILIES, 2)))
def test_two_families_that_agree_are_read_as_the_first(one: bytes, other: bytes) -> None:
    extra = [(other + b"event-id", b"of the other")]
    said = READER.read([*whole(other), *extra, *whole(one)])

    first = min(one, other, key=FAMILIES.index)
    assert said.event_id == (b"of the other" if first == other else None)


@pytest.mark.parametrize(("one", "other"), list(permutations(FAMILIES, 2)))
@pytest.mark.parametrize("differing", [{"hmac": "T"}, {"shop": "b.myshopify.com"}])
def test_two_families_that_differ_are_refused(
    one: bytes, other: bytes, differing: dict[str, str]
) -> None:
    with pytest.raises(HeadersDisagree):
        READER.read([*whole(one), *whole(other, **differing)])


def test_a_shop_named_by_another_family_is_not_mixed_in() -> None:
    said = READER.read(
        lines(b"x-shopify-", hmac_sha256="S", topic="orders/create")
        + lines(b"shopify-", shop_domain="a.myshopify.com")
    )

    assert said.shop_domain is None


def test_a_family_without_a_signature_says_nothing() -> None:
    assert READER.read(lines(b"shopify-", shop_domain="a.myshopify.com")) == NOTHING
    assert READER.read([(b"host", b"x")]) == NOTHING


@pytest.mark.parametrize("name", ["hmac-sha256", "shop-domain", "topic"])
def test_a_second_line_of_what_decides_is_refused(name: str) -> None:
    with pytest.raises(HeadersDisagree):
        READER.read([*whole(b"x-shopify-"), (b"x-shopify-" + name.encode(), b"S")])


def test_names_are_read_in_any_case_and_a_family_can_be_switched_off() -> None:
    said = READER.read([(name.title(), value) for name, value in whole(b"x-commerce-")])
    off = HeaderReader((b"x-shopify-", b"shopify-"))

    assert said.signature == b"S"
    assert off.read(whole(b"x-commerce-")) == NOTHING


@given(st.binary(max_size=40))
def test_only_the_one_base64_of_32_bytes_is_a_digest(raw: bytes) -> None:
    assert digest_of(base64.b64encode(raw)) == (raw if len(raw) == 32 else None)


@pytest.mark.parametrize(
    "spelled",
    [
        None,
        b"",
        b"=" * 44,
        b"A" * 44,
        b"A" * 42 + b"B=",
        b"-" * 43 + b"=",
        b"A" * 21 + b" " + b"A" * 21 + b"=",
        b"\xff" * 44,
        "é".encode() * 22,
    ],
)
def test_other_spellings_are_no_digest(spelled: bytes | None) -> None:
    assert digest_of(spelled) is None
