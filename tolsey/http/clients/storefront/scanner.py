"""A scan: what one visit to a storefront comes to, category by category.

Whatever the storefront does, a scan ends within its bounds with a verdict on every category.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import httpx
import orjson

from tolsey.actors.ports import OwnPage
from tolsey.actors.storefront.observed import (
    CATEGORIES,
    Fact,
    Judged,
    Observation,
    ObservedProduct,
    Reached,
    ScanVerdict,
    Validators,
    unavailable,
)
from tolsey.http.clients.guard import guarded_client
from tolsey.http.clients.storefront import facts
from tolsey.http.clients.storefront.markup import Marks, read_marks
from tolsey.http.clients.storefront.providers import Providers
from tolsey.http.clients.storefront.reading import CatalogueReading
from tolsey.http.clients.storefront.records import DomainRecords
from tolsey.http.clients.storefront.robots import Robots
from tolsey.http.clients.storefront.technologies import Technology, detect
from tolsey.http.clients.storefront.visit import (
    FetchedPage,
    LedElsewhere,
    Manners,
    PageUnread,
    Visit,
)

LIMITS: Final = httpx.Limits(max_connections=1, max_keepalive_connections=1)
"""One connection for a site: it is never asked for two things at once."""
ROBOTS_KEPT: Final = timedelta(hours=24)
ROBOTS_REMEMBERED: Final = 512
INVITED_BYTES: Final = 1_024
NO_SHOP: Final = frozenset({Reached.UNREACHABLE, Reached.NOT_COMMERCE, Reached.REDIRECTED})
NOT_READ: Final = Judged(verdict=ScanVerdict.EMPTY, reason="The first page could not be read.")


class WebScanner:
    """Scans storefronts over the public web; fills the port `StorefrontScanner`."""

    def __init__(
        self,
        *,
        agent: str,
        providers: Providers,
        clock: Callable[[], datetime],
        manners: Manners = Manners(),  # noqa: B008 - it is frozen
        via: str | None = None,
        dns_url: str | None = None,
        client: Callable[..., httpx.AsyncClient] = guarded_client,
    ) -> None:
        self._agent = agent
        self._providers = providers
        self._clock = clock
        self._manners = manners
        self._via = via
        self._records = DomainRecords(dns_url)
        self._client = client
        self._robots = OrderedDict[str, tuple[datetime, Robots]]()

    async def scan(
        self, domain: str, *, is_deep: bool, known: Validators | None = None
    ) -> Observation:
        """Look at a domain: all of its catalogue when `is_deep`, else its first page."""
        local = [self._via] if self._via else []
        async with self._client(local, peer="storefronts", limits=LIMITS) as client:
            visit = Visit(
                domain,
                client,
                self._manners,
                agent=self._agent,
                via=self._via,
                remembered=self._remembered,
            )
            found = Findings()
            await found.look(visit, is_deep=is_deep, known=known)
        self._remember(visit.robots)
        told = await self._providers.told(domain, found.profiles, is_shop=found.is_shop)
        for category, said in told.items():
            found.put(category, said)
        return found.observation(domain, visit, self._clock())

    async def proofs(self, domain: str, *, path: str, record: str) -> Sequence[str]:
        """Read the texts that a domain's owner put there for us: in a file, and in TXT records below the domain."""
        in_file = await self._invited(domain, path)
        return [*in_file, *await self._records.texts(f"{record}.{domain}")]

    async def _invited(self, domain: str, path: str) -> Sequence[str]:
        local = [self._via] if self._via else []
        async with self._client(local, peer="storefronts", limits=LIMITS) as client:
            visit = Visit(domain, client, self._manners, agent=self._agent, via=self._via)
            try:
                page = await visit.read(path, is_invited=True)
            except PageUnread:
                return ()
        return (page.body[:INVITED_BYTES].decode("utf-8", "replace"),) if page.is_found else ()

    async def owned(
        self, domain: str, paths: Sequence[str], *, password: str | None = None
    ) -> Mapping[str, OwnPage]:
        """Look at pages of a site for its owner, by the password that visitors are asked for where there is one."""
        local = [self._via] if self._via else []
        found = dict[str, OwnPage]()
        async with self._client(local, peer="storefronts", limits=LIMITS) as client:
            visit = Visit(domain, client, self._manners, agent=self._agent, via=self._via)
            if password is not None:
                # Where that fails the pages themselves tell.
                with suppress(PageUnread):
                    await visit.enter(password)
            for path in paths:
                try:
                    page = await visit.read(path, is_invited=True)
                except PageUnread:
                    found[path] = OwnPage(status=None)
                else:
                    found[path] = OwnPage(
                        status=page.status,
                        text=page.body.decode("utf-8", "replace"),
                        asks_password=_is_password_page(page),
                    )
        return found

    def _remembered(self, host: str) -> Robots | None:
        kept = self._robots.get(host)
        if kept is None or self._clock() - kept[0] > ROBOTS_KEPT:
            return None
        return kept[1]

    def _remember(self, read: Mapping[str, Robots]) -> None:
        for host, robots in read.items():
            # A site that could not say its rules is asked again the next time.
            if not robots.denial and self._remembered(host) is None:
                self._robots[host] = (self._clock(), robots)
        while len(self._robots) > ROBOTS_REMEMBERED:
            self._robots.popitem(last=False)


class Findings:
    """What a visit has found up to now."""

    def __init__(self) -> None:
        self._facts = dict[str, Fact]()
        self._diagnosis = dict[str, Judged]()
        self._marks: Marks | None = None
        self._technologies: Sequence[Technology] = ()
        self._meta: Mapping[str, Any] = {}
        self._sitemaps: int | None = None
        self._products: dict[int, ObservedProduct] | None = None
        self._is_whole = self._is_unchanged = False
        self._validators: Validators | None = None
        self._reached = Reached.ACTIVE
        self._canonical: str | None = None
        self.profiles: Mapping[str, str] = {}

    @property
    def is_shop(self) -> bool:
        """Whether there is a shop at the domain, be it closed to us."""
        return self._reached not in NO_SHOP

    async def look(self, visit: Visit, *, is_deep: bool, known: Validators | None) -> None:
        """Read the site's pages one after the other, as far as it and the bounds let it be read."""
        try:
            home = await visit.read("/")
        except LedElsewhere as led:
            self._reached, self._canonical = Reached.REDIRECTED, led.host
            return self._judge_all(Judged(verdict=ScanVerdict.EMPTY, reason=led.reason))
        except PageUnread as error:
            self._home_unread(error)
            if self._reached in {Reached.UNREACHABLE, Reached.BLOCKED}:
                return None
        else:
            if _is_password_page(home):
                self._reached = Reached.PASSWORD_PROTECTED
                reason = "It opens with a password only."
                return self._judge_all(Judged(verdict=ScanVerdict.BLOCKED, reason=reason))
            visit.base = str(home.url)
            self._marks = read_marks(home.body) if home.is_found else Marks()
            self._technologies = detect(self._marks, home.headers)
        # What matters most is asked first: a slow or strict site may let nothing else be read.
        reading = CatalogueReading(visit, is_deep=is_deep, known=known)
        await reading.begin()
        self._meta = await _json(visit, "/meta.json")
        self._sitemaps = await _sitemaps(visit)
        await reading.go_on()
        self._catalogue_judged(reading)
        self._conclude()
        return None

    def _home_unread(self, error: PageUnread) -> None:
        """Say what became of a site whose first page could not be read."""
        self._judge_all(Judged(verdict=error.verdict, reason=error.reason))
        if error.is_unreachable:
            self._reached = Reached.UNREACHABLE
        elif error.verdict == ScanVerdict.BLOCKED:
            self._reached = Reached.BLOCKED
        elif error.verdict == ScanVerdict.ROBOTS_DENIED:
            self._reached = Reached.ROBOTS_DENIED

    def _judge_all(self, judged: Judged) -> None:
        """Give every category that the site itself answers the same verdict."""
        for category in CATEGORIES:
            self._diagnosis[category] = judged

    def _catalogue_judged(self, reading: CatalogueReading) -> None:
        verdict, unread = reading.verdict, reading.unread
        self._is_whole, self._is_unchanged = reading.is_whole, reading.is_unchanged
        self._validators = reading.validators
        products = reading.products
        if products or self._is_whole:
            self._products = products
            source = "/products.json"
            self._facts["product_count"] = facts.observed(len(products), source)
            self._facts["variant_count"] = facts.observed(reading.variants, source)
            self._facts |= facts.category(tuple(products.values()))
        if unread and verdict is facts.OK:
            some = ScanVerdict.PARTIAL if products else ScanVerdict.FAILED
            verdict = Judged(verdict=some, reason=f"{unread} entries are no products.")
        if self._is_whole and not products:
            verdict = Judged(verdict=ScanVerdict.EMPTY, reason="It has no products.")
        self._diagnosis["catalogue"] = verdict

    def _conclude(self) -> None:
        """Judge what is made of the pages that were read."""
        has_catalogue = self._products is not None or self._is_unchanged
        marks = self._marks
        self.put("identity", facts.identity(self._meta, marks))
        self.put("platform", facts.platform(self._technologies, has_catalogue))
        if self._is_unchanged:
            self._diagnosis["pricing"] = facts.OK
        elif has_catalogue:
            found = facts.pricing(tuple((self._products or {}).values()), self._currency)
            self.put("pricing", found)
        else:
            self._diagnosis["pricing"] = self._diagnosis["catalogue"]
        if marks is not None:
            self.put("technology", facts.technology(self._technologies, marks))
            self.put("content", facts.content(marks, self._sitemaps))
            self.put("shipping", facts.shipping(self._meta, marks))
            self.put("reviews", facts.reviews(self._technologies, marks))
            self.profiles = facts.profiles(marks)
        # A shop without a catalogue and without a platform's mark is none that we can tell from any site.
        if not has_catalogue and self._reached is Reached.ACTIVE and not self._has_platform:
            self._reached = Reached.NOT_COMMERCE
            if self._diagnosis["catalogue"].verdict == ScanVerdict.BLOCKED:
                self._reached = Reached.BLOCKED
        if has_catalogue and self._reached is Reached.ROBOTS_DENIED:
            self._reached = Reached.ACTIVE

    @property
    def _has_platform(self) -> bool:
        return "platform" in self._facts

    @property
    def _currency(self) -> str | None:
        code = self._meta.get("currency")
        return code if isinstance(code, str) and len(code) == 3 and code.isupper() else None  # noqa: PLR2004 - ISO 4217

    def put(self, category: str, found: facts.Found) -> None:
        """Take what was found of a category, and the verdict on it."""
        more, self._diagnosis[category] = found
        self._facts |= more

    def observation(self, domain: str, visit: Visit, at: datetime) -> Observation:
        """Put together what was seen."""
        for category in ("velocity", "revenue"):
            reason = "No earlier snapshot is there to compare with."
            self._diagnosis.setdefault(category, Judged(verdict=ScanVerdict.EMPTY, reason=reason))
        for name in ("monthly_revenue", "best_seller_velocity"):
            self._facts.setdefault(name, unavailable("It was not read."))
        visits = self._diagnosis["traffic"]
        self._facts.setdefault("monthly_visits", unavailable(visits.reason))
        return Observation(
            domain=domain,
            observed_at=at,
            reached=self._reached,
            canonical=self._canonical,
            facts=self._facts,
            diagnosis={one: self._diagnosis.get(one, NOT_READ) for one in CATEGORIES},
            cost=visit.cost,
            products=None if self._products is None else tuple(self._products.values()),
            is_whole=self._is_whole,
            is_unchanged=self._is_unchanged,
            currency=self._currency,
            retry_after_seconds=visit.retry_after_seconds,
            validators=self._validators,
        )


def _is_password_page(page: FetchedPage) -> bool:
    """Whether a shop shows nothing but the page that asks for its password."""
    return page.url.path.rstrip("/").endswith("/password") or b"template-password" in page.body


async def _json(visit: Visit, path: str) -> Mapping[str, Any]:
    """Read an object; empty where there is none."""
    try:
        page = await visit.read(path)
        found = orjson.loads(page.body) if page.is_found else {}
    except (PageUnread, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


async def _sitemaps(visit: Visit) -> int | None:
    """Count what the sitemap lists; None where it cannot be read."""
    try:
        page = await visit.read("/sitemap.xml")
    except PageUnread:
        return None
    return page.body.count(b"<loc>") if page.is_found else None
