"""Those who know of storefronts what these do not show: visits, followers, advertisements, each in its provider's form."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from tolsey.sandbox.server import Receive, Send, listening

KEYS: Final = {
    "traffic_api_key": "traffic-key",
    "social_api_key": "social-key",
    "ads_api_key": "ads-key",
}

Query = Mapping[str, str]


@dataclass
class IntelligenceProviders:
    """What they know, and what they answer instead while `failing`."""

    visits: dict[str, int] = field(default_factory=dict)
    """By domain."""
    followers: dict[str, int | None] = field(default_factory=dict)
    """By a channel's handle; None where it hides them."""
    captions: dict[str, list[str]] = field(default_factory=dict)
    """The links of the advertisements that name a domain."""
    failing: tuple[int, bytes] | None = None
    asked: list[tuple[str, Query]] = field(default_factory=list)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[dict[str, str]]:
        """Serve on loopback, and give the settings that lead there."""
        async with listening(self._answer) as port:
            url = f"http://127.0.0.1:{port}"
            yield {"traffic_url": url, "social_url": url, "ads_url": url, **KEYS}

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        del receive
        if scope["type"] != "http":
            return
        query = {name: said[0] for name, said in parse_qs(scope["query_string"].decode()).items()}
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], query))
        status, body = self.failing or self._told(scope["path"], query, headers)
        listed = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": listed})
        await send({"type": "http.response.body", "body": body})

    def _told(self, path: str, query: Query, headers: Mapping[str, str]) -> tuple[int, bytes]:
        key, given, refused, told = {
            "/v5/website-analysis/websites/traffic-and-engagement": (
                KEYS["traffic_api_key"],
                headers.get("api-key"),
                (403, b"invalid API key"),
                self._visits,
            ),
            "/youtube/v3/channels": (
                KEYS["social_api_key"],
                headers.get("x-goog-api-key"),
                (400, b'{"error":{"code":400,"message":"API key not valid."}}'),
                self._channels,
            ),
            "/v23.0/ads_archive": (
                f"Bearer {KEYS['ads_api_key']}",
                headers.get("authorization"),
                (400, b'{"error":{"type":"OAuthException","code":190}}'),
                self._advertisements,
            ),
        }[path]
        return told(query) if given == key else refused

    def _visits(self, query: Query) -> tuple[int, bytes]:
        domain, month = query["domain"], query["start_date"]
        known = self.visits.get(domain)
        rows = [] if known is None else [{"date": f"{month}-01", "visits": float(known)}]
        request = {"domain": domain, "metrics": ["visits"], "country": "WW"}
        return 200, orjson.dumps({"meta": {"request": request, "status": "Success"}, "data": rows})

    def _channels(self, query: Query) -> tuple[int, bytes]:
        handle = query.get("forHandle", "")
        if handle not in self.followers:
            return 200, b'{"kind":"youtube#channelListResponse","pageInfo":{"totalResults":0}}'
        count = self.followers[handle]
        told: dict[str, Any] = {"hiddenSubscriberCount": count is None, "videoCount": "3"}
        if count is not None:
            told["subscriberCount"] = str(count)
        return 200, orjson.dumps({"items": [{"id": f"UC{handle}", "statistics": told}]})

    def _advertisements(self, query: Query) -> tuple[int, bytes]:
        listed = self.captions.get(query["search_terms"], [])
        most = int(query["limit"])
        data = [
            {"id": str(n), "ad_creative_link_captions": [one]}
            for n, one in enumerate(listed[:most])
        ]
        answer: dict[str, Any] = {"data": data}
        if len(listed) > most:
            answer["paging"] = {"cursors": {"after": "x"}, "next": "https://graph.facebook.com/x"}
        return 200, orjson.dumps(answer)
