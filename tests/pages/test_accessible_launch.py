"""axe finds nothing wrong with the pages of a launch, in light and in dark."""

from pathlib import Path

import anyio
import pytest

from tests.http.launch.merchant import SPEC
from tests.journeys.conftest import Seller
from tests.pages.accessible import axe_source, violations
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_launch import merchant, sign_in

__all__ = ["merchant"]

SEEDED_FAULT = "document.querySelector('main').append(document.createElement('img')); 0"


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = axe_source(Path(tmp_path_factory.mktemp("axe")))
    if source is None:
        pytest.skip("axe-core is not to be had: no npm, or no registry")
    return source


async def test_axe_finds_nothing_wrong_with_any_page_of_a_launch(
    bazaar: Bazaar, merchant: Seller, page: Page, axe: str
) -> None:
    address = f"/stores/{merchant.store_id}/launch"
    await sign_in(bazaar, page, f"{address}/answers/name")
    found = dict[str, object]()

    async def look(path: str) -> None:
        await page.open(f"{bazaar.url}{path}", width=1280)
        found[path] = await violations(page, axe)

    for question in ("name", "country", "goods", "shipping", "products", "review"):
        await look(f"{address}/answers/{question}")
    begun = await merchant.post("/api/wizard/store/launch", storeId=merchant.store_id, spec=SPEC)
    assert begun.status_code == 201, begun.text
    with anyio.fail_after(120):
        while "never given write_locations" not in (await merchant.browser.get(address)).text:
            await anyio.sleep(0.2)
    for milestone in ("operations.location", "brand.approve", "foundation.audit", "launch.unlock"):
        await look(f"{address}/{milestone}")
    await look(address)
    await page.open(f"{bazaar.url}{address}/brand.kit", width=1280)
    await page.click("form[action$='/rehearse'] button")
    found["dry run"] = await violations(page, axe)
    assert {path: one for path, one in found.items() if one} == {}

    # What has a fault is found to have it.
    await page.read(SEEDED_FAULT)
    faults = {one.partition(": ")[2] for one in await violations(page, axe)}
    assert {one.partition(":")[0] for one in faults} == {"image-alt"}
