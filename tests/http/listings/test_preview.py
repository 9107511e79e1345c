"""A link to a listing brings a picture of its badge, drawn the same on every machine, and only while it holds."""

import struct
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.http.listings.seller_side import DAY, Seller
from tests.http.people import Clock
from tests.pages.test_hostile import HOSTILE
from tolsey.http.selling.preview import Preview, drawn

SAID = Preview(
    title="Corner Ceramics",
    claim="Verified revenue",
    amount="USD 143.45 in 30 days",
    note="Read from the source on 2026-11-22",
    address="tolsey.example",
    is_green=True,
)


def size(png: bytes) -> tuple[int, int]:
    """Read the size of a picture from its header (PNG, section 11.2.2)."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


async def test_a_verified_listing_has_a_picture_that_is_not_sent_twice(
    verified: Seller, clock: Clock
) -> None:
    first = await verified.public("/og.png")
    assert (first.status_code, first.headers["content-type"]) == (200, "image/png")
    assert size(first.content) == (1200, 630)
    assert first.headers["cache-control"] == "public, max-age=300"
    assert first.headers["cross-origin-resource-policy"] == "cross-origin"
    path = f"/api/public/listings/{verified.made['slug']}/og.png"
    again = await verified.browser.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")

    clock.advance(timedelta(minutes=20))
    assert (await verified.public("/og.png")).content == first.content
    clock.advance(DAY)
    grey = await verified.public("/og.png")
    assert grey.content != first.content
    clock.advance(7 * DAY)
    assert (await verified.public("/og.png")).status_code == 404


async def test_a_listing_that_is_not_verified_has_none(seller: Seller) -> None:
    await seller.post("publish")
    assert (await seller.public("/og.png")).status_code == 404


@pytest.mark.parametrize(
    "title", [HOSTILE, "W" * 140, "w " * 70, "متجر", "", "\u202eabc", "Ωμέγα Ж é ß"]
)
def test_any_title_has_a_picture(title: str) -> None:
    assert size(drawn(replace(SAID, title=title))) == (
        1200,
        630,
    )


def test_letters_that_have_no_picture_are_not_drawn_as_boxes() -> None:
    unknown = replace(SAID, title="متجر")
    turned = replace(SAID, title="\u202eabc")
    assert drawn(unknown) == drawn(turned)
    assert drawn(unknown) != drawn(SAID)
