"""What a scan makes of a storefront, over HTTP."""

import orjson
import pytest

from tests.golden.cases import BESIDE
from tests.http.clients.storefront.web import SHOP, looked, scanner
from tolsey.actors.storefront.observed import CATEGORIES, Provenance, Reached, ScanVerdict
from tolsey.http.clients.storefront.visit import Manners
from tolsey.sandbox.storefronts import ROBOTS, Storefront, Storefronts, product

REAL = BESIDE / "commerce" / "storefront" / "products.json"


def shop(products: int = 3, **given: object) -> Storefront:
    listed = [product(n + 1, price=f"{n + 1}.50") for n in range(products)]
    return Storefront(domain=SHOP, products=listed, **given)  # type: ignore[arg-type]


async def test_a_shop_is_read_category_by_category_with_how_each_thing_is_known() -> None:
    seen = await looked(shop())
    assert seen.reached is Reached.ACTIVE
    assert {one: seen.diagnosis[one].verdict for one in CATEGORIES} == {
        **dict.fromkeys(CATEGORIES, ScanVerdict.OK),
        "velocity": ScanVerdict.EMPTY,
        "revenue": ScanVerdict.EMPTY,
        "social": ScanVerdict.PARTIAL,
        "traffic": ScanVerdict.MISSING_CREDENTIAL,
        "ads": ScanVerdict.MISSING_CREDENTIAL,
    }
    named = {one: seen.diagnosis[one].env for one in ("traffic", "ads", "social", "catalogue")}
    assert named == {
        "traffic": "TRAFFIC_API_KEY",
        "ads": "ADS_API_KEY",
        "social": "SOCIAL_API_KEY",
        "catalogue": None,
    }
    facts = {name: (fact.value, fact.provenance) for name, fact in seen.facts.items()}
    assert facts["currency"] == ("USD", Provenance.OBSERVED)
    assert facts["platform"] == ("Shopify", Provenance.DETECTED)
    assert facts["median_price"] == ("2.50", Provenance.OBSERVED)
    assert facts["product_count"] == (3, Provenance.OBSERVED)
    assert facts["theme"][0] == {"name": "Dawn", "version": "15.0.0"}
    assert [one["name"] for one in facts["apps"][0]] == ["Klaviyo", "Judge.me"]
    assert facts["monthly_visits"] == (None, Provenance.UNAVAILABLE)
    assert all(fact.source for fact in seen.facts.values())


@pytest.mark.skipif(not REAL.is_file(), reason="no ../shared/data/commerce here")
async def test_the_public_catalogue_of_a_real_store_is_read_whole() -> None:
    real = orjson.loads(REAL.read_bytes())
    seen = await looked(Storefront(domain=SHOP, products=real["products"]))
    assert seen.products is not None
    assert seen.is_whole
    assert len(seen.products) == len(real["products"]) == 23
    for read, listed in zip(seen.products, real["products"], strict=True):
        assert (read.id, read.title, read.handle) == (
            listed["id"],
            listed["title"],
            listed["handle"],
        )
        assert [(one.id, str(one.price)) for one in read.variants] == [
            (one["id"], one["price"]) for one in listed["variants"]
        ]
    assert seen.diagnosis["catalogue"].verdict is ScanVerdict.OK


async def test_a_catalogue_of_several_pages_is_read_to_its_end() -> None:
    seen = await looked(shop(products=501))
    assert (seen.is_whole, len(seen.products or ())) == (True, 501)
    light = await looked(shop(products=501), is_deep=False)
    assert (light.is_whole, len(light.products or ())) == (False, 250)
    assert light.diagnosis["catalogue"].verdict is ScanVerdict.PARTIAL


async def test_a_catalogue_that_did_not_change_is_not_sent_again() -> None:
    own = shop()
    async with Storefronts(own).serve() as url:
        scanning = scanner(url)
        first = await scanning.scan(SHOP, is_deep=True)
        assert first.validators is not None
        again = await scanning.scan(SHOP, is_deep=True, known=first.validators)
        own.products.append(product(9))
        changed = await scanning.scan(SHOP, is_deep=True, known=first.validators)
    assert (again.is_unchanged, again.products) == (True, None)
    assert again.diagnosis["catalogue"].verdict is ScanVerdict.OK
    assert (changed.is_unchanged, len(changed.products or ())) == (False, 4)
    assert own.paths().count("/robots.txt") == 1  # kept for a day


@pytest.mark.parametrize(
    ("own", "reached", "verdict"),
    [
        (shop(has_password=True), Reached.PASSWORD_PROTECTED, ScanVerdict.BLOCKED),
        (shop(has_catalogue=False), Reached.NOT_COMMERCE, ScanVerdict.EMPTY),
        (shop(products=0), Reached.ACTIVE, ScanVerdict.EMPTY),
        (shop(redirects={"/": "https://other.example/"}), Reached.REDIRECTED, ScanVerdict.EMPTY),
        (
            shop(robots="User-agent: *\nDisallow: /"),
            Reached.ROBOTS_DENIED,
            ScanVerdict.ROBOTS_DENIED,
        ),
        (
            shop(robots="User-agent: tolsey\nDisallow: /products.json"),
            Reached.ACTIVE,
            ScanVerdict.ROBOTS_DENIED,
        ),
        (shop(robots_status=503), Reached.ROBOTS_DENIED, ScanVerdict.ROBOTS_DENIED),
        (shop(robots_status=404), Reached.ACTIVE, ScanVerdict.OK),
        (shop(throttled=[(403, None)]), Reached.BLOCKED, ScanVerdict.BLOCKED),
        (shop(throttled=[(430, None)]), Reached.BLOCKED, ScanVerdict.BLOCKED),
        (shop(throttled=[(429, "600")]), Reached.BLOCKED, ScanVerdict.BLOCKED),
        (shop(throttled=[(200, None), (403, None)]), Reached.BLOCKED, ScanVerdict.BLOCKED),
    ],
)
async def test_what_a_site_turns_out_to_be_is_told(
    own: Storefront, reached: Reached, verdict: ScanVerdict
) -> None:
    seen = await looked(own)
    assert (seen.reached, seen.diagnosis["catalogue"].verdict) == (reached, verdict)
    assert seen.diagnosis["catalogue"].reason or verdict is ScanVerdict.OK
    assert set(seen.diagnosis) == set(CATEGORIES)


async def test_a_wildcard_of_robots_is_a_wildcard() -> None:
    own = shop(robots="User-agent: *\nDisallow: /*.json*page=\n")
    seen = await looked(own)
    assert seen.diagnosis["catalogue"].verdict is ScanVerdict.ROBOTS_DENIED
    assert not any(path.startswith("/products.json") for path in own.paths())
    assert "/meta.json" in own.paths()


async def test_where_a_shop_moved_within_its_own_site_it_is_read_there() -> None:
    own = shop(redirects={"/": "https://www.shop.example/password-free"})
    seen = await looked(own)
    hosts = {one.path: one.headers["host"] for one in own.asked}
    assert hosts["/products.json?limit=250&page=1"] == "www.shop.example"
    assert seen.is_whole


async def test_pauses_between_requests_are_kept_at_the_server_and_one_connection_is_used() -> None:
    own = shop(products=300)
    await looked(own, Manners(pace_seconds=0.1))
    gaps = [after.at - before.at for before, after in zip(own.asked, own.asked[1:], strict=False)]
    assert len(gaps) >= 4
    assert (
        min(gaps) >= 0.095
    )  # both clocks are this machine's; the server's read comes a moment later
    assert len({one.port for one in own.asked}) == 1
    assert {one.headers["user-agent"] for one in own.asked} == {"tolsey/1.0 (+https://t.example)"}


async def test_a_longer_pause_that_robots_asks_for_is_kept() -> None:
    own = shop(robots=f"{ROBOTS}Crawl-delay: 0.2\n")
    await looked(own)
    gaps = [after.at - before.at for before, after in zip(own.asked, own.asked[1:], strict=False)]
    assert min(gaps[1:]) >= 0.195


async def test_a_patience_that_is_asked_for_is_had_and_the_page_is_asked_for_again() -> None:
    own = shop(throttled=[(429, "0.3")])
    seen = await looked(own)
    assert seen.diagnosis["catalogue"].verdict is ScanVerdict.OK
    first, again = [one.at for one in own.asked if one.path == "/"]
    assert again - first >= 0.3


async def test_a_site_that_wants_no_crawler_is_asked_nothing_more() -> None:
    own = shop(throttled=[(429, "600")])
    seen = await looked(own)
    assert own.paths() == ["/robots.txt", "/"]
    assert seen.retry_after_seconds == 600


async def test_a_scan_makes_no_more_requests_than_it_may() -> None:
    own = shop(products=40 * 250)
    seen = await looked(own)
    assert len(own.asked) == 40
    assert seen.diagnosis["catalogue"].verdict is ScanVerdict.PARTIAL
    assert not seen.is_whole
    assert len(seen.products or ()) == 36 * 250
    short = shop(products=40 * 250)
    await looked(short, Manners(pace_seconds=0.2, seconds=0.9))
    assert len(short.asked) <= 5


async def test_a_stores_own_pages_are_read_as_somebody_meets_them() -> None:
    open_shop, closed = shop(), shop(has_password=True)
    for site, asks in ((open_shop, False), (closed, True)):
        async with Storefronts(site).serve() as url:
            pages = await scanner(url).owned(SHOP, ["/", "/robots.txt"])
        assert (pages["/"].status, pages["/"].asks_password) == (200, asks)
        assert pages["/robots.txt"].asks_password is False
    async with Storefronts().serve() as url:
        gone = await scanner(url).owned(SHOP, ["/cart"])
    assert gone["/cart"].status == 404


@pytest.mark.parametrize(("told", "asks"), [("between us", False), ("guessed", True)])
async def test_a_closed_store_lets_its_owner_in_by_the_password_alone(
    told: str, *, asks: bool
) -> None:
    closed = shop(has_password=True, files={"/cart": "A cart"})
    async with Storefronts(closed).serve() as url:
        pages = await scanner(url).owned(SHOP, ["/cart"], password=told)
        assert pages["/cart"].asks_password is asks
        # The next visit is let in no more than the first.
        again = await scanner(url).owned(SHOP, ["/cart"])
    assert again["/cart"].asks_password is True
