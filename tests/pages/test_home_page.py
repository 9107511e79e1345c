"""The home page follows what wants its reader, and is walked with keys."""

from typing import Any

from tests import timing
from tests.journeys.conftest import Seller
from tests.journeys.test_home import PROPOSED
from tests.pages.chromium import Page
from tests.pages.conftest import Bazaar
from tests.pages.test_axe import enter

OPENED = "document.querySelector('#keys').open"


async def until(page: Page, script: str) -> None:
    await timing.until(lambda: page.read(script))


async def key(page: Page, name: str) -> None:
    for kind in ("keyDown", "keyUp"):
        said: dict[str, Any] = {"text": name} if kind == "keyDown" and len(name) == 1 else {}
        await page.call("Input.dispatchKeyEvent", type=kind, key=name, **said)


async def test_the_home_page_tells_what_came_and_keeps_what_somebody_is_at(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await enter(page, bazaar.url, seller.browser)
    await page.open(f"{bazaar.url}/", width=1280)
    assert "Agents ask you" not in await page.text("#wants")
    before = await page.text("h1")
    # Nobody's focus is taken away: a part that somebody is at says that there is more.
    await page.read("document.querySelector('#wants a').focus()")
    await bazaar.running.service.database.execute(PROPOSED, seller.store_id)
    await until(page, f"document.querySelector('#standing h1').textContent !== {before!r}")
    await until(page, "!document.querySelector('#follows a').hidden")
    assert "Agents ask you" not in await page.text("#wants")
    assert await page.read("document.querySelector('#wants').contains(document.activeElement)")
    await page.read("document.activeElement.blur()")
    await bazaar.running.service.database.execute(
        "UPDATE agent_operations SET state = 'rejected', finished_at = now()"
    )
    await until(page, f"document.querySelector('#standing h1').textContent === {before!r}")
    assert page.problems == []


async def test_rows_are_walked_and_picked_with_keys_which_a_dialog_names(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await enter(page, bazaar.url, seller.browser)
    for domain in ("rival.example.com", "other.example.com"):
        made = await seller.post(f"/api/stores/{seller.store_id}/competitors", domain=domain)
        assert made.status_code in {200, 201, 202}, made.text
    await page.open(f"{bazaar.url}/stores/{seller.store_id}/competitors", width=1280)
    await key(page, "?")
    assert await page.read(OPENED)
    assert "Pick the row" in await page.text("#keys")
    await key(page, "j")
    assert await page.read("document.activeElement.closest('dialog') !== null")
    await page.read("document.querySelector('#keys button').click()")
    await until(page, f"!{OPENED}")
    await page.read("document.activeElement.blur()")
    at = "[...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tr'))"
    for pressed, row in (("j", 0), ("j", 1), ("j", 1), ("k", 0)):
        await key(page, pressed)
        assert await page.read(at) == row
    picked = "[...document.querySelectorAll('main tbody input')].map(one => one.checked)"
    await key(page, "x")
    assert await page.read(picked) == [True, False]
    await key(page, "x")
    assert await page.read(picked) == [False, False]
    assert page.problems == []


async def test_a_page_prints_what_it_says_and_nothing_to_press(
    bazaar: Bazaar, seller: Seller, page: Page
) -> None:
    await enter(page, bazaar.url, seller.browser)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    await page.call("Emulation.setEmulatedMedia", media="print", features=dark)
    await page.open(f"{bazaar.url}/", width=800)
    shown = "[...document.querySelectorAll(%r)].filter(one => one.checkVisibility()).length"
    assert await page.read(shown % ".side, .bar, .foot, .button, button, dialog") == 0
    assert await page.read(shown % "main h1, #wants li b") > 1
    ink = "getComputedStyle(document.querySelector('main h1')).color"
    assert await page.read(ink) == "rgb(0, 0, 0)"
