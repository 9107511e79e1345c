"""A buyer reads a seller's site, which shows our page in a frame."""

from datetime import timedelta

import pytest

from tests.pages.chromium import Page
from tests.pages.conftest import Market, OtherSite
from tolsey.http.layout.words import money

SPILLS = """[...document.querySelectorAll('h1, p, dt, dd, span, a')].filter(part => {
  const box = part.getBoundingClientRect(), card = document.querySelector('main')
  const edge = card.getBoundingClientRect()
  return box.left < edge.left || box.right > edge.right || box.bottom > edge.bottom
      || (part.scrollWidth > part.clientWidth && getComputedStyle(part).display != 'inline')
}).map(part => part.textContent)
"""
WIDTHS = (240, 360, 720)
HOSTILE = {
    "script": '"><script>alert(1)</script><img src=x onerror=alert(2)>',
    "closes the title": "</title></style></h1></main><script>alert(1)</script>",
    "overrides its direction": "\u202egnitsil \u2066\u202dtrusted \u202e",
    "one long word": "W" * 140,
    "many words": "many words " * 12,
    "piled up accents": "Z\u0334\u0353\u0302\u0306\u0315\u031b" * 20,
    "right to left": "متجر الخزف Corner",
}


async def test_another_site_frames_the_page_and_its_visitors_read_the_number(
    market: Market, other_site: OtherSite, page: Page
) -> None:
    other_site.frame(market.address("/embed"))
    await page.open(other_site.url)

    said = await page.read("document.body.innerText", frame=0)
    proof = await market.proof()
    for figure in ("revenue30d", "mrr", "annualised"):
        assert money(proof[figure], proof["currency"]) in said
    assert "Verified revenue" in said
    assert "Synced just now" in said
    radius = await page.read("getComputedStyle(document.querySelector('main')).borderRadius", 0)
    assert radius == "12px", "the style was not applied"
    assert page.problems == []
    assert page.requests == [f"{other_site.url}/", market.address("/embed")]


async def test_a_frame_of_a_listing_without_proof_shows_no_number(
    market: Market, other_site: OtherSite, page: Page
) -> None:
    other_site.frame(market.address("/embed", verified=False))
    await page.open(other_site.url)

    said = await page.read("document.body.innerText", frame=0)
    assert "Not verified" in said
    assert "USD" not in said
    assert page.problems == []


async def test_a_frame_of_old_numbers_says_how_old_they_are(
    market: Market, other_site: OtherSite, page: Page
) -> None:
    proved = market.clock.now.date().isoformat()
    market.clock.advance(timedelta(hours=25))
    try:
        other_site.frame(market.address("/embed"))
        await page.open(other_site.url)
    finally:
        market.clock.advance(-timedelta(hours=25))

    said = await page.read("document.body.innerText", frame=0)
    assert f"Last verified {proved}" in said
    assert f"30 days to {proved}" in said
    assert page.problems == []


@pytest.mark.parametrize("title", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_title_stays_text_inside_its_card(
    market: Market, other_site: OtherSite, page: Page, title: str
) -> None:
    await market.entitle(title)
    other_site.frame(market.address("/embed"), widths=WIDTHS)
    await page.open(other_site.url)

    assert page.problems == [], "a script ran or something was fetched"
    assert set(page.requests) == {f"{other_site.url}/", market.address("/embed")}
    for frame in range(len(WIDTHS)):
        assert await page.read("document.querySelector('h1').textContent", frame) == title.strip()
        assert await page.read("document.title", frame) == " ".join(title.split())
        assert await page.read("document.querySelectorAll('script, img').length", frame) == 0
        assert await page.read(SPILLS, frame) == []
        said = await page.read("document.querySelector('main').innerText", frame)
        assert "\nVerified revenue\n" in said
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.read(wide, frame) == 0


@pytest.mark.parametrize("tail", ["", "/verification", "/history", "/badge.svg"])
async def test_what_is_not_made_for_frames_refuses_them(
    market: Market, other_site: OtherSite, page: Page, tail: str
) -> None:
    await refused(market.address(tail), other_site, page)


@pytest.mark.parametrize("path", ["/docs/api", "/openapi.json", "/api/health", "/nowhere"])
async def test_the_rest_of_the_service_refuses_frames(
    market: Market, other_site: OtherSite, page: Page, path: str
) -> None:
    await refused(market.url + path, other_site, page)


async def refused(url: str, other_site: OtherSite, page: Page) -> None:
    other_site.frame(url)
    await page.open(other_site.url)
    assert any("frame-ancestors 'none'" in problem for problem in page.problems), page.problems
    assert await page.read("location.href", 0) == "chrome-error://chromewebdata/"
