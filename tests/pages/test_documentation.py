"""A developer opens the description of the interface."""

import pytest

from tests.pages.chromium import Page
from tests.pages.conftest import Market

OPERATIONS = """[...document.querySelectorAll('.opblock-summary')].map(operation => [
  operation.querySelector('.opblock-summary-method').textContent.toLowerCase(),
  operation.querySelector('.opblock-summary-path').dataset.path,
])"""


async def test_the_page_lists_every_operation_and_asks_no_one_else(
    market: Market, page: Page
) -> None:
    described = (await market.seller.get("/openapi.json")).json()
    await page.open(f"{market.url}/docs/api")
    await page.wait_for(".opblock")

    listed = {(method, path) for method, path in await page.read(OPERATIONS)}
    assert listed == {
        (method, path) for path, operations in described["paths"].items() for method in operations
    }
    asked = [url for url in page.requests if not url.startswith("data:")]
    assert len(asked) > 4
    assert all(url.startswith(f"{market.url}/") for url in asked)
    assert page.problems == []


@pytest.mark.parametrize("path", ["/api/auth/signup", "/api/public/listings/{slug}/badge.svg"])
async def test_an_operation_opens_and_says_what_it_takes(
    market: Market, page: Page, path: str
) -> None:
    await page.open(f"{market.url}/docs/api")
    await page.wait_for(f"[data-path='{path}']")
    await page.read(f"document.querySelector(\"[data-path='{path}']\").click()")
    await page.wait_for(".opblock.is-open .opblock-body")

    said = await page.read("document.querySelector('.opblock.is-open').innerText")
    assert "Responses" in said
    assert ("theme" if "badge" in path else "email") in said
    assert page.problems == []
