"""One visit to a site: every request of it is paced, counted, bounded, and asked of robots.txt first.

The guard of `clients.guard` sits where sockets are opened, so that each redirect and each later answer
of a name meets it again; here stands what keeps a visit polite and its cost bounded.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import anyio
import httpx

from tolsey.actors.storefront.observed import ScanCost, ScanVerdict, Validators
from tolsey.http.clients.decoding import Undecodable, decoded, retry_after
from tolsey.http.clients.guard import ForbiddenAddress
from tolsey.http.clients.storefront.robots import UNREACHABLE, Robots

MOST_REDIRECTS: Final = 5
PORTS: Final = {"http": 80, "https": 443}
CHALLENGED: Final = frozenset({401, 403, 430})
"""What a site answers that wants no crawler: the visit ends there."""
THROTTLED: Final = frozenset({429, 503})
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a visit behaves, and the most that it may cost (rules/intelligence#manners)."""

    pace_seconds: float = 2.0
    requests: int = 40
    seconds: float = 90.0
    request_seconds: float = 10.0
    body_bytes: int = 8 << 20
    all_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """An answer that was read whole."""

    url: httpx.URL
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_found(self) -> bool:
        """Whether there is something at the address."""
        return self.status == 200  # noqa: PLR2004 - RFC 9110

    @property
    def validators(self) -> Validators:
        """What a later request can be made conditional with."""
        return Validators(
            etag=_short(self.headers.get("etag")),
            last_modified=_short(self.headers.get("last-modified")),
        )


class PageUnread(Exception):  # noqa: N818 - what happened
    """A page was not read; `verdict` and the sentence say why."""

    def __init__(self, verdict: ScanVerdict, reason: str, *, is_unreachable: bool = False) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason
        self.is_unreachable = is_unreachable


class LedElsewhere(PageUnread):
    """The site leads to another one, which is a domain of its own."""

    def __init__(self, host: str) -> None:
        super().__init__(ScanVerdict.EMPTY, f"It leads to {host}.")
        self.host = host


class Visit:
    """Reads pages of one site, one after the other, over one connection."""

    def __init__(
        self,
        domain: str,
        client: httpx.AsyncClient,
        manners: Manners,
        *,
        agent: str,
        via: str | None = None,
        remembered: Callable[[str], Robots | None] = lambda _: None,
    ) -> None:
        self.base = f"https://{domain}/"
        self.robots: dict[str, Robots] = {}
        self.retry_after_seconds: float | None = None
        self._domain = domain
        self._client = client
        self._manners = manners
        self._agent = agent
        self._via = httpx.URL(via) if via else None
        self._remembered = remembered
        self._began = time.monotonic()
        self._free_at = 0.0
        self._requests = self._bytes = 0
        self._over: PageUnread | None = None

    @property
    def cost(self) -> ScanCost:
        """What the visit took up to now."""
        took = time.monotonic() - self._began
        return ScanCost(requests=self._requests, bytes=self._bytes, seconds=round(took, 3))

    async def read(
        self, path: str, known: Validators | None = None, *, is_invited: bool = False
    ) -> FetchedPage:
        """Read a page of the site, its redirects followed while they stay there. Raises PageUnread.

        One that the site's owner put there for us to read `is_invited`: robots.txt is about others.
        """
        try:
            url = httpx.URL(self.base).join(path)
        except httpx.InvalidURL as error:
            why = f"{self._domain} is no address of the web."
            raise PageUnread(ScanVerdict.FAILED, why, is_unreachable=True) from error
        for _ in range(MOST_REDIRECTS + 1):
            robots = Robots(None) if is_invited else await self._robots_of(url)
            refusal = robots.refusal(str(url))
            if refusal:
                raise PageUnread(ScanVerdict.ROBOTS_DENIED, f"{url.path}: {refusal}.")
            page = await self._patient(url, known, robots)
            if page.status not in REDIRECTS:
                return page
            url = self._led(page)
        raise PageUnread(ScanVerdict.FAILED, f"{path} leads round in a circle.")

    async def enter(self, password: str) -> None:
        """Tell a site the password that it asks its visitors for; its cookie is kept for this visit. Raises PageUnread."""
        form = {"form_type": "storefront_password", "utf8": "✓", "password": password}
        at = httpx.URL(self.base).join("/password")
        await self._exchange(at, None, Robots(None), form=form)

    async def _robots_of(self, url: httpx.URL) -> Robots:
        """Read the rules of a site once for a visit; a first visit may learn there where the site is."""
        found = self.robots.get(url.host) or self._remembered(url.host)
        if found is None:
            found = await self._read_robots(url)
        self.robots[url.host] = found
        return found

    async def _read_robots(self, url: httpx.URL) -> Robots:
        at = url.copy_with(raw_path=b"/robots.txt")
        try:
            # RFC 9309, section 2.3.1.2: up to five redirects, whatever site they lead to within ours.
            for _ in range(MOST_REDIRECTS + 1):
                page = await self._patient(at, None, Robots(None), is_robots=True)
                if page.status not in REDIRECTS:
                    return Robots.of(page.status, page.body)
                at = self._led(page)
        except LedElsewhere:
            return Robots(None)  # what is asked next will lead there, too
        except PageUnread as error:
            if error.is_unreachable or error is self._over:
                raise
        return UNREACHABLE

    def _led(self, page: FetchedPage) -> httpx.URL:
        """Say where a redirect leads, within the site. Raises LedElsewhere and PageUnread."""
        try:
            to = page.url.join(page.headers.get("location", ""))
        except httpx.InvalidURL as error:
            raise PageUnread(ScanVerdict.FAILED, "It leads to no address.") from error
        port = PORTS.get(to.scheme)
        if port is None or to.userinfo or to.port not in {None, port} or not to.host:
            raise PageUnread(ScanVerdict.FAILED, "It leads to an address that is not of the web.")
        if not is_same_site(self._domain, to.host):
            raise LedElsewhere(to.host)
        return to.copy_with(fragment=None)

    async def _patient(
        self, url: httpx.URL, known: Validators | None, robots: Robots, *, is_robots: bool = False
    ) -> FetchedPage:
        """Ask for a page; once more when the site asks for a patience that the visit has."""
        page = await self._exchange(url, known, robots)
        if page.status in THROTTLED and (not is_robots or page.status == 429):  # noqa: PLR2004
            wait = retry_after(page.headers)
            self.retry_after_seconds = wait
            if wait is None or wait > self._left():
                self._end(f"It answered {page.status} and wants to be left alone for now.")
            self._free_at = time.monotonic() + max(wait or 0.0, 0.0)
            page = await self._exchange(url, known, robots)
            if page.status in THROTTLED:
                self.retry_after_seconds = retry_after(page.headers) or wait
                self._end(f"It answered {page.status} again after {wait:g} seconds.")
            self.retry_after_seconds = None
        if page.status in CHALLENGED and not is_robots:
            self._end(f"It answered {page.status} and wants no crawler.")
        return page

    def _end(self, why: str) -> None:
        """Ask nothing more of the site in this visit. Raises PageUnread."""
        self._over = PageUnread(ScanVerdict.BLOCKED, why)
        raise self._over

    def _left(self) -> float:
        return self._manners.seconds - (time.monotonic() - self._began)

    async def _exchange(
        self,
        url: httpx.URL,
        known: Validators | None,
        robots: Robots,
        *,
        form: Mapping[str, str] | None = None,
    ) -> FetchedPage:
        """Make one request when its turn has come, and read its answer within the bounds."""
        if self._over is not None:
            raise self._over
        wait = self._free_at - time.monotonic()
        spent = self._requests >= self._manners.requests or self._bytes >= self._manners.all_bytes
        if spent or max(wait, 0.0) >= self._left():
            raise PageUnread(ScanVerdict.PARTIAL, "The scan had read as much as one scan may.")
        if wait > 0:
            await anyio.sleep(wait)
        self._requests += 1
        try:
            with anyio.fail_after(min(self._manners.request_seconds, self._left())):
                return await self._page(self._request(url, known, form), url)
        except TimeoutError as error:
            raise PageUnread(
                ScanVerdict.FAILED, f"{url.path} did not arrive in time.", is_unreachable=True
            ) from error
        except httpx.HTTPError as error:
            why = "cannot be reached"
            if isinstance(error.__cause__, ForbiddenAddress):
                why = "is not at a public address"
            raise PageUnread(
                ScanVerdict.FAILED, f"{url.host} {why}.", is_unreachable=True
            ) from error
        except Undecodable as error:
            raise PageUnread(ScanVerdict.FAILED, f"{url.path}: {error}") from error
        finally:
            self._free_at = time.monotonic() + robots.delay_seconds(self._manners.pace_seconds)

    async def _page(self, request: httpx.Request, url: httpx.URL) -> FetchedPage:
        response = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            async with aclosing(self._pieces(response)) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > self._manners.body_bytes:
                        raise Undecodable(
                            f"It is longer than {self._manners.body_bytes >> 20} MiB."
                        )
            return FetchedPage(
                url=url, status=response.status_code, headers=response.headers, body=bytes(body)
            )
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _pieces(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        async for piece in decoded(response):
            self._bytes += len(piece)
            yield piece

    def _request(
        self, url: httpx.URL, known: Validators | None, form: Mapping[str, str] | None
    ) -> httpx.Request:
        method = "GET" if form is None else "POST"
        headers = {
            "User-Agent": self._agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip",
        }
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        if known is not None and known.last_modified:
            headers["If-Modified-Since"] = known.last_modified
        if self._via is None:
            return self._client.build_request(method, url, headers=headers, data=form)
        at = self._via.copy_with(raw_path=url.raw_path)
        return self._client.build_request(
            method, at, headers={**headers, "Host": url.host}, data=form
        )


def is_same_site(domain: str, host: str) -> bool:
    """Whether a host is a domain's own: itself, or below it; `www.` makes no difference."""
    own = domain.removeprefix("www.")
    return host == own or host.endswith(f".{own}")


def _short(header: str | None) -> str | None:
    """Take a validator that can be sent back: no longer than a header may reasonably be."""
    return header if header and len(header) <= 256 and header.isascii() else None  # noqa: PLR2004
