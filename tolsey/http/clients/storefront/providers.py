"""What others know of a shop that it does not show itself: visits, followers and advertisements.

Each category has one provider and one key. A provider that has no key is never asked, and the category names the
variable to set; whatever a provider does, its category ends with a verdict (rules/intelligence#providers).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import orjson

from tolsey.actors.storefront.observed import Fact, Judged, Provenance, ScanVerdict
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient
from tolsey.http.clients.storefront.facts import OK, Found, observed
from tolsey.http.clients.storefront.visit import is_same_site

TIMEOUT_SECONDS: Final = 10.0
KEPT: Final = timedelta(hours=24)
"""What a provider said of a shop: its figures move by the month, and each question costs."""
REMEMBERED: Final = 4_096
VARIABLES: Final = {"traffic": "TRAFFIC_API_KEY", "social": "SOCIAL_API_KEY", "ads": "ADS_API_KEY"}
"""Which variable opens the provider of a category."""
PUBLISHED_ON: Final = 10
"""By this day of a month the visits of the month before are published."""
ADS_READ: Final = 250
SHOWN_IN: Final = (
    "AT BE BG CY CZ DE DK EE ES FI FR GB GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
)
"""Where the library has advertisements of every kind: the European Union and the United Kingdom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount:
    """Where a provider is reached, and with which key."""

    url: str
    key: str | None = field(default=None, repr=False)


class ProviderSilent(Exception):  # noqa: N818 - what happened
    """A provider did not say what was asked; `judged` is what becomes of its category."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.reason)
        self.judged = judged


class Providers:
    """Asks the providers that have a key, of each shop once a day at most."""

    def __init__(
        self, accounts: Mapping[str, ProviderAccount], clock: Callable[[], datetime]
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._http = CountedClient(
            "providers", verify=trusted_certificates(), timeout=TIMEOUT_SECONDS
        )
        self._kept = OrderedDict[tuple[str, str], tuple[datetime, Found]]()

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def told(
        self, domain: str, profiles: Mapping[str, str], *, is_shop: bool
    ) -> Mapping[str, Found]:
        """Ask what is known of a domain, category by category; of one that shows no shop nobody is asked."""
        questions = {
            "traffic": lambda: self._visits(domain),
            "social": lambda: self._followers(profiles),
            "ads": lambda: self._advertisements(domain),
        }
        answers = await asyncio.gather(
            *(
                self._answered(category, domain, asked if is_shop else None)
                for category, asked in questions.items()
            )
        )
        found = dict(zip(questions, answers, strict=True))
        facts, judged = found["social"]
        if profiles:
            # Which profiles there are the shop says itself: the provider adds how many follow them.
            facts = {"profiles": observed(profiles, "links of /"), **facts}
            if judged.verdict is not ScanVerdict.OK:
                judged = replace(judged, verdict=ScanVerdict.PARTIAL)
            found["social"] = facts, judged
        return found

    async def _answered(self, category: str, domain: str, asked: Callable[[], Any] | None) -> Found:
        account = self._accounts.get(category)
        if account is None or account.key is None:
            return {}, _unset(category)
        if asked is None:
            reason = "No provider was asked, as there is no shop to see at the domain."
            return {}, Judged(verdict=ScanVerdict.EMPTY, reason=reason)
        kept = self._kept.get((category, domain))
        if kept is not None and self._clock() - kept[0] < KEPT:
            return kept[1]
        try:
            found: Found = await asked()
        except ProviderSilent as silent:
            return {}, silent.judged
        self._kept[category, domain] = (self._clock(), found)
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)
        return found

    async def _visits(self, domain: str) -> Found:
        """Read the visits of the last month that is published (Similarweb, API version 5)."""
        month = _last_published(self._clock())
        answer = await self._ask(
            "traffic",
            "Similarweb",
            "/v5/website-analysis/websites/traffic-and-engagement",
            {
                "domain": domain,
                "metrics": "visits",
                "granularity": "monthly",
                "start_date": month,
                "end_date": month,
                "country": "ww",
                "web_source": "total",
            },
            key_in="api-key",
        )
        rows = answer.get("data")
        visits = next(
            (
                one["visits"]
                for one in (rows if isinstance(rows, list) else ())
                if isinstance(one, dict) and _is_number(one.get("visits"))
            ),
            None,
        )
        if visits is None:
            reason = f"Similarweb has no visits of this site in {month}."
            return {}, Judged(verdict=ScanVerdict.EMPTY, reason=reason)
        source = f"Similarweb, {month}, worldwide, desktop and mobile"
        fact = Fact(value=round(visits), provenance=Provenance.ESTIMATED, source=source)
        return {"monthly_visits": fact}, OK

    async def _followers(self, profiles: Mapping[str, str]) -> Found:
        """Read the subscribers of the channel that the shop links to (YouTube Data API, version 3)."""
        if not profiles:
            reason = "Its first page links to no profile."
            return {}, Judged(verdict=ScanVerdict.EMPTY, reason=reason)
        channel = _channel(profiles.get("youtube", ""))
        others = ", ".join(sorted(set(profiles) - {"youtube"}))
        if channel is None:
            reason = (
                f"Followers are read of YouTube alone; it links to {', '.join(sorted(profiles))}."
            )
            return {}, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
        answer = await self._ask(
            "social",
            "YouTube",
            "/youtube/v3/channels",
            {"part": "statistics", **channel},
            key_in="X-Goog-Api-Key",
        )
        items = answer.get("items")
        first = items[0] if isinstance(items, list) and items else None
        told = first.get("statistics") if isinstance(first, dict) else None
        count = told.get("subscriberCount") if isinstance(told, dict) else None
        if told is None or told.get("hiddenSubscriberCount") or not str(count).isdecimal():
            reason = "Its YouTube channel does not show how many follow it."
            return {}, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
        found = {"followers": observed({"youtube": int(str(count))}, "YouTube Data API")}
        if others:
            reason = f"Followers are read of YouTube alone, not of {others}."
            return found, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
        return found, OK

    async def _advertisements(self, domain: str) -> Found:
        """Count the advertisements that lead to the site and are shown now (Meta's library of advertisements)."""
        answer = await self._ask(
            "ads",
            "Meta's library of advertisements",
            "/v23.0/ads_archive",
            {
                "search_terms": domain,
                "ad_type": "ALL",
                "ad_active_status": "ACTIVE",
                "ad_reached_countries": orjson.dumps(SHOWN_IN.split()).decode(),
                "fields": "id,ad_creative_link_captions",
                "limit": str(ADS_READ),
            },
            key_in="Authorization",
        )
        listed = answer.get("data")
        entries = listed if isinstance(listed, list) else []
        count = sum(_leads_to(one, domain) for one in entries)
        source = "Meta's library, shown in the European Union or the United Kingdom"
        found = {"active_ads": observed(count, source)}
        paging = answer.get("paging")
        if isinstance(paging, dict) and paging.get("next"):
            reason = f"More name it than the {ADS_READ} that were read: it is at least so many."
            return found, Judged(verdict=ScanVerdict.PARTIAL, reason=reason)
        return found, OK

    async def _ask(
        self, category: str, name: str, path: str, params: Mapping[str, str], *, key_in: str
    ) -> Mapping[str, Any]:
        """Ask a provider. Raises ProviderSilent; its key is in no address, so that it is in no log."""
        account, variable = self._accounts[category], VARIABLES[category]
        key = f"Bearer {account.key}" if key_in == "Authorization" else str(account.key)
        try:
            answer = await self._http.get(
                f"{account.url}{path}", params=params, headers={key_in: key}
            )
        except httpx.HTTPError as error:
            raise _silent(f"{name} could not be reached.") from error
        match answer.status_code:
            case 200:
                return _object(answer.content, name)
            case 400 | 401 | 403:
                raise _silent(
                    f"{name} refuses the key, or what it includes is used up: look at {variable}.",
                    env=variable,
                )
            case 404:
                reason = f"{name} knows nothing of this site."
                raise ProviderSilent(Judged(verdict=ScanVerdict.EMPTY, reason=reason))
            case 429:
                raise _silent(f"{name} wants fewer questions for now.")
            case status:
                raise _silent(f"{name} answered {status}.")


def _unset(category: str) -> Judged:
    """Judge a category whose provider has no key: by the variable to set."""
    variable = VARIABLES[category]
    reason = f"Set {variable} to read this."
    return Judged(verdict=ScanVerdict.MISSING_CREDENTIAL, reason=reason, env=variable)


def _silent(reason: str, env: str | None = None) -> ProviderSilent:
    return ProviderSilent(Judged(verdict=ScanVerdict.FAILED, reason=reason, env=env))


def _object(body: bytes, name: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise _silent(f"{name} answered something that cannot be read.")
    return found


def _last_published(now: datetime) -> str:
    back = 1 if now.day > PUBLISHED_ON else 2
    months = now.year * 12 + now.month - 1 - back
    return f"{months // 12:04d}-{months % 12 + 1:02d}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15  # noqa: PLR2004 - no NaN


def _channel(link: str) -> Mapping[str, str] | None:
    """Say by which parameter a channel is asked for; None for what is no channel's address."""
    try:
        parts: Sequence[str] = urlsplit(link).path.strip("/").split("/")
    except ValueError:
        return None
    match parts:
        case [handle, *_] if handle.startswith("@") and len(handle) > 1:
            return {"forHandle": handle}
        case ["channel", id, *_] if id:
            return {"id": id}
        case ["user", name, *_] if name:
            return {"forUsername": name}
    return None


def _leads_to(advertisement: Any, domain: str) -> bool:
    """Whether the link that an advertisement shows is one of the site's; a mention of its name is not."""
    captions = (
        advertisement.get("ad_creative_link_captions") if isinstance(advertisement, dict) else None
    )
    return any(
        is_same_site(domain, one.strip().lower().partition("/")[0].removeprefix("www."))
        for one in (captions if isinstance(captions, list) else ())
        if isinstance(one, str)
    )
