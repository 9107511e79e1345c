"""A seller puts the badge on their own site, as a picture."""

from datetime import timedelta
from typing import Any

import pytest

from tests.pages.chromium import Page
from tests.pages.conftest import Market, OtherSite
from tolsey.http.selling.badge import HEIGHTS

READABLE = 4.5
"""The least contrast of text that WCAG 2.2 takes for readable (criterion 1.4.3)."""
LOOKS = [(size, theme) for size in HEIGHTS for theme in ("light", "dark")]
TEXTS = """[...document.querySelectorAll('text')].map(text => {
  const box = text.getBBox()
  const [ground, panel] = ['rect', 'path'].map(name => document.querySelector(name))
  const onPanel = box.x < panel.getBBox().width
  text.insertAdjacentHTML('afterend', text.outerHTML.replace(/ textLength="\\d+"/, ''))
  const free = text.nextSibling, natural = free.getComputedTextLength()
  free.remove()
  return {
    left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height,
    start: onPanel ? 0 : panel.getBBox().width,
    end: onPanel ? panel.getBBox().width : document.documentElement.width.baseVal.value,
    stretch: box.width / natural,
    ink: text.getAttribute('fill'), ground: (onPanel ? panel : ground).getAttribute('fill'),
  }
})"""


async def test_another_site_shows_the_badge_in_every_size(
    market: Market, other_site: OtherSite, page: Page
) -> None:
    badge = market.address("/badge.svg")
    other_site.body = "".join(
        f'<img src="{badge}?size={size}&amp;theme={theme}" alt=""><br>' for size, theme in LOOKS
    )
    await page.open(other_site.url)

    pictures = "[...document.images].map(picture => [picture.complete, picture.naturalHeight])"
    heights = [HEIGHTS[size][0] for size, _ in LOOKS]
    assert await page.read(pictures) == [[True, height] for height in heights]
    assert page.problems == []


@pytest.mark.parametrize("hours", [0, 25], ids=["green", "grey"])
async def test_every_word_of_the_badge_is_whole_and_readable(
    market: Market, page: Page, hours: int
) -> None:
    market.clock.advance(timedelta(hours=hours))
    try:
        for size, theme in LOOKS:
            await page.open(f"{market.address('/badge.svg')}?size={size}&theme={theme}")
            texts = await page.read(TEXTS)
            assert len(texts) == (2 if hours else 3)
            legible(texts, HEIGHTS[size][0])
    finally:
        market.clock.advance(-timedelta(hours=hours))
    assert page.problems == []


def legible(texts: list[dict[str, Any]], height: int) -> None:
    """Check each text against the edges of its panel, the text before it, and its ground."""
    edge = 0.0
    for text in texts:
        assert max(edge, text["start"]) < text["left"], text
        assert text["right"] < text["end"], text
        assert 0 <= text["top"] < text["bottom"] <= height, text
        assert 0.85 < text["stretch"] < 1.25, text
        assert contrast(text["ink"], text["ground"]) >= READABLE, text
        edge = text["right"]


async def test_a_badge_that_is_not_deserved_is_a_broken_picture(
    market: Market, other_site: OtherSite, page: Page
) -> None:
    other_site.body = f'<img src="{market.address("/badge.svg", verified=False)}" alt="none">'
    await page.open(other_site.url)

    assert await page.read("document.images[0].naturalWidth") == 0
    assert page.requests[-1] == market.address("/badge.svg", verified=False)


def contrast(one: str, other: str) -> float:
    """Compare two colours as WCAG 2.2 defines it."""
    lights = sorted(map(luminance, (one, other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
