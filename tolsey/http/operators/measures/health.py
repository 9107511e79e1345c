"""Whether the service serves: `GET /api/health` (rules/service#health)."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Literal

import structlog
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey import __version__
from tolsey.http.answers.operators.operations import ChecksAnswer, HealthAnswer
from tolsey.http.web.access import public
from tolsey.http.web.context import service
from tolsey.storage.errors import StorageError

PROBE_SECONDS = 2.0

log = structlog.get_logger()
routes = Blueprint("health", __name__)
tag_blueprint(routes, ["Health"])


@routes.get("/api/health")
@public
async def health() -> tuple[HealthAnswer, Literal[200, 503], Mapping[str, str]]:
    """Answer 200 when the database and the cache answer within 2 s each, else 503.

    Also 503 while the process stops or has no lease (`checks.cache` is false), or while its commits
    hang (`checks.db` is false): its own actors refuse then. The reason is in the log under `health.degraded`, never in the body.
    """
    running = service()
    select = running.database.fetchrow("SELECT 1 AS one")
    db, cache = await asyncio.gather(_probe("db", select), _probe("cache", running.cache.ping()))
    stopping, leased = running.runtime.draining, running.shard.leased
    commits = running.runtime.admin.commit_seconds <= PROBE_SECONDS
    reason = (
        ("stopping" if stopping else None)
        or (None if leased else "no lease")
        or (None if commits else "commits hang")
    )
    if reason:
        log.warning("health.degraded", reason=reason)
    db, cache = db and commits, cache and leased and not stopping
    ok = db and cache
    body = HealthAnswer(ok=ok, checks=ChecksAnswer(db=db, cache=cache), version=__version__)
    return body, 200 if ok else 503, {"Cache-Control": "no-store"}


async def _probe(name: str, check: Awaitable[object]) -> bool:
    try:
        ok = bool(await asyncio.wait_for(check, PROBE_SECONDS))
        reason = "no answer"
    except (TimeoutError, StorageError) as error:
        ok, reason = False, type(error).__name__
    if not ok:
        log.warning("health.degraded", check=name, reason=reason)
    return ok
