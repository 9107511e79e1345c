"""Every part can be looked at in every state, is readable in light and dark, and fits a telephone."""

import httpx
import pytest

from tests.http.people import settings_of
from tests.journeys.conftest import free_port
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite, served
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tolsey.http.layout.templates import ENVIRONMENT

UNNAMED = """[...document.querySelectorAll('input:not([type=hidden]), select, button, a, iframe')]
  .filter(one => !(one.labels?.length || one.innerText?.trim() || one.getAttribute('aria-label') || one.title))
  .map(one => one.outerHTML)"""


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_part_is_readable_and_fits(
    live_site: ServedSite, page: Page, theme: str, width: int
) -> None:
    await page.open(f"{live_site.url}/ui/parts?theme={theme}", width=width)
    texts = await page.read(TEXTS)
    assert len(texts) > 60
    assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []
    assert await page.read("document.documentElement.scrollWidth") == width
    assert await page.read(UNNAMED) == []
    assert page.problems == []


async def test_the_gallery_frames_its_parts_and_lets_no_one_else(
    live_site: ServedSite, page: Page
) -> None:
    await page.open(f"{live_site.url}/ui", width=1280)
    frames = "[...document.querySelectorAll('iframe')].map(one => one.contentDocument.querySelectorAll('.sheet').length)"
    assert all(count > 10 for count in await page.read(frames))
    assert page.problems == []


def test_no_part_is_left_out() -> None:
    loader = ENVIRONMENT.loader
    assert loader is not None
    shown, _, _ = loader.get_source(ENVIRONMENT, "ui/parts.html")
    parts = vars(ENVIRONMENT.get_template("parts.html").module)
    inner = {"described", "below"}
    assert [
        name
        for name in parts
        if not name.startswith("_") and name not in inner and f"ui.{name}(" not in shown
    ] == []


async def test_a_service_of_the_public_has_no_gallery(database_url: str, redis_url: str) -> None:
    settings = settings_of(
        base_url="https://tolsey.example", database_url=database_url, redis_url=redis_url
    )
    port = free_port()
    async with (
        served(settings, port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        for path in ("/ui", "/ui/parts"):
            answer = await client.get(path, headers={"Host": "tolsey.example"})
            assert answer.status_code == 404
