"""The page that checks a signature says plainly what it could not test, and what it tested and found wrong."""

import json

import pytest

from tests.pages.chromium import Page
from tests.pages.conftest import Market

WITHOUT = {
    "Ed25519": "SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException('', 'NotSupportedError'))",
    "WebCrypto": "Object.defineProperty(Crypto.prototype, 'subtle', {get: () => undefined})",
}


@pytest.mark.parametrize("missing", WITHOUT)
async def test_a_browser_that_cannot_test_it_is_told_so(
    market: Market, page: Page, missing: str
) -> None:
    await page.call("Page.addScriptToEvaluateOnNewDocument", source=WITHOUT[missing])
    await page.open(f"{market.url}/listings/{market.verified['slug']}/check")
    await page.wait_for("[data-outcome=unsupported]:not([hidden])")
    assert "This browser cannot test Ed25519 signatures." in await page.text("[role=status]")
    assert page.problems == []


async def test_a_key_that_nobody_publishes_and_another_listing_prove_nothing(
    market: Market, page: Page
) -> None:
    await page.open(f"{market.url}/listings/{market.verified['slug']}/check")
    await page.wait_for("[data-outcome=right]:not([hidden])")
    proof = await market.proof()
    proof["signature"]["keyId"] = "of-nobody"
    await check(page, proof, "unknown-key")
    other = await market.seller.get(market.address("/verification", verified=False))
    await check(page, other.json(), "another-listing")
    assert page.problems == []


async def check(page: Page, document: object, outcome: str) -> None:
    written = json.dumps(json.dumps(document))
    await page.read(f"document.querySelector('#signed').value = {written}")
    await page.read("document.querySelector('[data-form]').requestSubmit()")
    await page.wait_for(f"[data-outcome={outcome}]:not([hidden])")
