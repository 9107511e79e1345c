"""A merchant signs up, connects an empty shop, answers the form and launches the store, all in a browser."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio
import pytest

from tests.http.launch.merchant import tick
from tests.http.people import PASSWORD, settings_of
from tests.journeys.conftest import SECRET, SHOP, free_port
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar, served
from tests.pages.test_first_pages import look
from tests.pages.test_launch import ANSWERS
from tests.pages.test_money import photograph
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.files import StoredFile
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, LAUNCH_SCOPES, WRITE_SCOPES, ShopSpec
from tolsey.sandbox.storefronts import Storefront, Storefronts

HOST = "loom.example"
PAGES = (
    *("/", "/products/blanket", "/collections/featured", "/collections/all", "/cart"),
    *("/pages/contact", "/sitemap.xml", "/robots.txt"),
)


@dataclass
class LaunchSite(Bazaar):
    """The service with an empty shop beside it, and the web that the shop's own site is on."""

    sites: Storefronts


@pytest.fixture
async def launch_site(
    chromium_path: str, database_url: str, redis_url: str
) -> AsyncIterator[LaunchSite]:
    port, platform, sites = free_port(), Platform(), Storefronts()
    platform.add_shop(
        ShopSpec(
            domain=SHOP,
            client_id="client-1",
            client_secret=SECRET,
            partner_development=True,
            scopes=(*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES),
        )
    )
    async with sites.serve() as web, platform.serve():
        settings = settings_of(
            base_url=f"http://127.0.0.1:{port}",
            database_url=database_url,
            redis_url=redis_url,
            commerce_url_template=platform.url_template,
            storefront_url=web,
            scan_pace_seconds=0,
            launch_theme_url="https://themes.example/ours.zip",
        )
        async with served(settings, port) as opened:
            yield LaunchSite(opened.url, opened.clock, opened.running, platform, sites)


async def connect(site: LaunchSite, page: Page) -> str:
    """Sign up, name a store and paste the keys of its app; answers the address of the launch."""
    await page.open(f"{site.url}/signup")
    await page.write("#email", "ann@example.com")
    await page.write("#password", PASSWORD)
    await page.write("#organizationName", "Loom & Co")
    await page.click("main button")
    await page.open(f"{site.url}/")
    await page.click("main .line .button")
    await page.write("#name", "Loom & Co")
    await page.click("main button")
    await page.write("#shopDomain", SHOP)
    await page.click("main button")
    await page.write("#clientId", "client-1")
    await page.write("#clientSecret", SECRET)
    await page.click("main form:not(.inline) button")
    store = (await page.address()).partition("?")[0]
    return f"{store}/launch"


@dataclass
class LaunchInBrowser:
    """A launch as its merchant sees it, and the shop in whose admin they do their part."""

    site: LaunchSite
    page: Page
    address: str

    async def answer(self) -> None:
        """Answer each question and begin."""
        await self.page.open(self.site.url + self.address)
        for given in ANSWERS.values():
            for name, text in given.items():
                await self.page.write(f"[name='{name}']", text)
            await self.page.click("main button")
        await self.page.write("#storefrontPassword", "between us")
        await self.page.click("main form button")
        assert await self.page.address() == self.address

    async def until_done(self, milestone: str) -> None:
        """Let ticks come until the page shows by itself that a milestone is done."""
        node = f"document.querySelector(`.node[href$='/{milestone}']`).className"
        with anyio.move_on_after(120):
            while "stands-good" not in await self.page.read(node):
                assert "stands-bad" not in await self.page.read(node), await self.page.text("main")
                await tick(self.site.running.service)
                await anyio.sleep(0.1)
        assert "stands-good" in await self.page.read(node), await self.page.text("main")

    async def mark_done(self, milestone: str) -> None:
        """Press Mark done, and go back to the launch."""
        await self.page.click(f".node[href$='/{milestone}']")
        await self.page.click("button[formaction$='/done']")
        assert "Done" in await self.page.text("main .chip")
        await self.page.open(self.site.url + self.address, width=1280)

    async def in_admin(self, milestone: str, act: Callable[[], object]) -> None:
        """Do something in the shop's admin, which the launch finds done."""
        act()
        await self.until_done(milestone)


async def test_a_store_goes_from_signup_to_its_first_look_as_an_open_one_in_a_browser(
    launch_site: LaunchSite, page: Page
) -> None:
    platform, shop = launch_site.platform, launch_site.platform.shop(SHOP)
    one = LaunchInBrowser(launch_site, page, await connect(launch_site, page))
    await one.answer()
    await one.until_done("brand.kit")
    await one.mark_done("brand.approve")
    await one.until_done("catalog.collections")
    for number, product in enumerate(shop.products.values(), 1):
        product.media = StoredFile(
            id=number, filename="p.png", alt="", content=b"", fileStatus="READY"
        )
    await one.mark_done("catalog.review")
    await one.in_admin("foundation.plan", lambda: setattr(shop, "partner_development", False))
    await one.in_admin(
        "operations.payments", lambda: setattr(shop.setup, "payments_activated", True)
    )
    await one.until_done("storefront.theme")
    await one.until_done("storefront.navigation")
    await look(page, "launch-5-half")

    def publish() -> None:
        main, *others = shop.setup.themes
        main["role"], others[-1]["role"] = "UNPUBLISHED", "MAIN"

    await one.in_admin("storefront.publish_theme", publish)
    await one.in_admin("launch.domain", lambda: setattr(shop, "primary_domain", HOST))
    await one.mark_done("operations.tax")
    await one.until_done("legal.policies")
    await one.mark_done("legal.review")
    for before in ("growth.seo", "growth.analytics", "growth.email", "catalog.publish"):
        await one.until_done(before)
    # The platform lives by a clock of its own.
    behind = launch_site.clock() - platform.now()
    platform.clock.advance(max(0.0, behind.total_seconds()) + 1)
    site = Storefront(domain=HOST, files=dict.fromkeys(PAGES, "A page"), has_password=True)
    launch_site.sites.add(site)
    await one.in_admin("launch.test_order", lambda: platform.place_order(SHOP, test=True))
    await one.until_done("launch.preflight")
    assert "/pages/contact" in site.paths()

    def unlock() -> None:
        shop.setup.has_password = site.has_password = False

    await one.in_admin("launch.unlock", unlock)
    await one.until_done("launch.verify")
    await page.open(launch_site.url + one.address, width=1280)
    assert "29 of 29 done." in await page.text("#count")
    await look(page, "launch-6-open")
    await page.click(".node[href$='/launch.verify']")
    assert HOST in await page.read("document.querySelector('main').textContent")
    await photograph(page, "launch-7-verified")
    assert [one for one in page.problems if "ERR_ABORTED" not in one] == []
