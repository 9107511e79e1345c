"""Why a store does not work: what its connection, deliveries, calls and listings say, worst first."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.ports import PlatformUnreachable
from tolsey.actors.refusals import NotFound, Unavailable
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.http.answers.operators.diagnosis import (
    CallAnswer,
    CauseAnswer,
    DiagnosisAnswer,
    SoldAnswer,
)
from tolsey.http.answers.stores.connection import StoreAnswer
from tolsey.http.operators.measures import footing
from tolsey.http.operators.measures.footing import Footing
from tolsey.http.web.context import now, service
from tolsey.runtime.errors import RuntimeFault
from tolsey.runtime.messages import ActorId
from tolsey.runtime.shards.oversight import Oversight
from tolsey.storage import operations
from tolsey.storage.commerce import connections, stores
from tolsey.storage.commerce.compliance import OVERDUE_AFTER
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Row
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.connection import DISCONNECTED, ConnectionStatus
from tolsey.storage.records.selling.listing import VerificationState
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.selling import listings

SHOWN: Final = 20
GATHER_SECONDS: Final = 2.0
UNANSWERED: Final = "unanswered"
"""Instead of an actor's status: no process answers for it now."""
NEEDED_SCOPES: Final = frozenset({topic.scope for topic in TOPICS.values() if topic.scope})
LONG_UNDER_WAY: Final = timedelta(seconds=30)
"""A try that is under way for longer is called slow; what is quicker is shown all the same."""

WELL: Final = (
    VerificationState.NONE,
    VerificationState.PENDING,
    VerificationState.VERIFIED,
    VerificationState.VERIFIED_NEW,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a store and of whoever works for it."""

    at: datetime
    store_id: str
    parts: StoreParts
    listed: Sequence[SoldAnswer]
    calls: Sequence[CallAnswer]
    refused: int
    """Deliveries in the shop's name that no secret signed, in all processes since they started."""
    refused_at: datetime | None
    status: str
    """Of the store's actor: awake, cold or paused; or that nobody answers for it."""
    obstacles: Sequence[Mapping[str, Any] | Row] = ()
    """Rows of `operations.obstacles`."""
    full_lanes: Mapping[str, int] = field(default_factory=dict)
    """How many calls wait in each lane that has no place left in some process."""
    footings: Mapping[str, Footing] = field(default_factory=dict)
    """How each process finds the servers, the clock and the disk that every store stands on."""


def causes_of(facts: Facts) -> list[CauseAnswer]:
    """Say what keeps a store from working, worst first."""
    found = (
        *footing.causes_of(facts.footings),
        *_of_connection(facts),
        *_of_deliveries(facts),
        *_of_calls(facts),
        *_of_obstacles(facts),
        *(cause for sold in facts.listed for cause in _of_listing(sold)),
    )
    return [_led(one, facts.store_id) for one in sorted(found, key=lambda one: RANKS[one.cause])]


def _led(cause: CauseAnswer, store_id: str) -> CauseAnswer:
    """Say on which page an operator acts, and what is done there."""
    page, act = PAGES.get(cause.cause, (None, None))
    led = cause.page or (page and page.format(store=store_id))
    return cause.model_copy(update={"page": led, "act": act})


PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "redis_lost": ("/admin/shards", "See the processes"),
    "lease_lost": ("/admin/shards", "See the processes"),
    "clock_off": ("/admin/shards", "See the processes"),
    "store_paused": ("/admin/actors/store/{store}/resume", "Resume the store"),
    "platform_down": ("/admin/incidents/open", "Tell people: open an incident"),
    "deliveries_refused": ("/admin/webhooks?storeId={store}", "See its deliveries"),
    "privacy_overdue": ("/admin/compliance?shown=overdue", "Carry out the steps"),
    "message_given_up": ("/admin/dead-letters", "Replay it or give it up"),
    "call_given_up": ("/admin/dead-letters", "Replay it or give it up"),
    "lane_full": ("/admin/calls", "See who holds the lane"),
    "call_failing": ("/admin/actors/store/{store}", "See its calls"),
    "call_under_way": ("/admin/actors/store/{store}", "See its calls"),
    "deal_disputed": ("/admin/disputes", "Decide the dispute"),
}
"""Where an operator acts, and what; what only the merchant can do is not among them."""


RANKS: Final[Mapping[str, int]] = {
    cause: rank
    for rank, cause in enumerate(
        (
            "database_full",
            "redis_lost",
            "lease_lost",
            "database_slow",
            "disk_full",
            "clock_off",
            "store_paused",
            "not_connected",
            "app_removed",
            "disconnected",
            "token_refused",
            "scope_taken",
            "platform_down",
            "deliveries_refused",
            "privacy_overdue",
            "message_given_up",
            "call_given_up",
            "lane_full",
            "call_failing",
            "topics_refused",
            "payment_failing",
            "credits_used_up",
            "milestone_failed",
            "milestone_blocked",
            "deal_disputed",
            "listing_unverified",
            "call_under_way",
        )
    )
}


def _of_connection(facts: Facts) -> Iterator[CauseAnswer]:
    if facts.status == "paused":
        yield CauseAnswer(
            cause="store_paused",
            why="An operator paused the store: its messages wait.",
            do="Resume it once what it was paused for is over; the audit trail says by whom and why.",
        )
    connection = facts.parts.connection
    if connection is None:
        yield CauseAnswer(
            cause="not_connected",
            why="The store was never connected to a shop.",
            do="The merchant connects it.",
        )
    elif connection.status == DISCONNECTED:
        yield CauseAnswer(
            cause="disconnected",
            why="The merchant disconnected the shop.",
            do="The merchant connects it again.",
        )
    elif connection.status == ConnectionStatus.REVOKED:
        yield CauseAnswer(
            cause="app_removed",
            why="The app was removed at the shop.",
            do="The merchant installs the app again and connects it.",
            since=connection.uninstalled_at,
        )
    elif connection.refused_at is not None:
        yield CauseAnswer(
            cause="token_refused",
            why="The platform refuses a new access token: the app's secret was changed, or the app removed.",
            do="The merchant connects again with the app's present secret.",
            since=connection.refused_at,
        )
    elif lacking := sorted(_lacking(connection.scopes)):
        yield CauseAnswer(
            cause="scope_taken",
            why=f"The shop's grant lacks {', '.join(lacking)}: what needs that is refused by the platform.",
            do="The merchant gives the app these permissions at the shop; the store reads them with"
            " the next token, or at once when the platform tells of it.",
            since=connection.scopes_at,
        )


def _lacking(scopes: Sequence[str]) -> frozenset[str]:
    """Say which permissions to read a grant lacks that every store needs; of one never told, none."""
    granted = {*scopes, *(one.replace("write_", "read_", 1) for one in scopes)}
    return NEEDED_SCOPES - granted if scopes else frozenset()


def _of_deliveries(facts: Facts) -> Iterator[CauseAnswer]:
    if facts.refused:
        count = "1 delivery" if facts.refused == 1 else f"{facts.refused} deliveries"
        yield CauseAnswer(
            cause="deliveries_refused",
            why=f"{count} in the shop's name came, signed with no secret that the store has:"
            " the app's secret was changed, or somebody forges.",
            do="The merchant connects again with the app's present secret; the platform repeats for 48 hours.",
            since=facts.refused_at,
        )
    shop = facts.parts.shop
    reported = orjson.loads(shop.subscriptions) if shop is not None else {}
    refused = sorted(topic for topic, became in reported.items() if became not in {"ok", "created"})
    if refused:
        yield CauseAnswer(
            cause="topics_refused",
            why=f"The platform took no subscription to {', '.join(refused)}.",
            do="The merchant grants the app the permissions that these topics need.",
            since=shop.subscribed_at if shop else None,
        )


UNREACHABLE: Final = (f"{PlatformUnreachable.__name__}(", f"{Unavailable.__name__}('The commerce")
"""How the last error begins of a call that the platform did not answer."""


def _is_unreachable(call: CallAnswer) -> bool:
    return (call.last_error or "").startswith(UNREACHABLE)


def _of_calls(facts: Facts) -> Iterator[CauseAnswer]:
    down = [one for one in facts.calls if one.state != "done" and _is_unreachable(one)]
    if down:
        yield CauseAnswer(
            cause="platform_down",
            why=f"The commerce platform does not answer for this shop: {len(down)} of its calls wait"
            f" for that. Last error: {down[0].last_error}",
            do="Look at the platform's status page and at the shop's address; calls are tried again by"
            " themselves, and platforms repeat their deliveries for 48 hours.",
            since=min(one.created_at for one in down),
        )
    for call in facts.calls:
        said = f" Last error: {call.last_error}" if call.last_error else ""
        name = f"{call.call} of {call.kind} {call.actor_id}"
        if call.state == "failed":
            yield CauseAnswer(
                cause="call_given_up",
                why=f"{name} was given up after {call.attempts} tries.{said}",
                do="Mend what it says, then replay the dead letter.",
                since=call.created_at,
            )
        elif call.state != "done" and call.last_error is not None and call not in down:
            yield CauseAnswer(
                cause="call_failing",
                why=f"{name} failed {call.attempts} times and is tried again.{said}",
                do="Nothing, once the other side answers: the next try comes by itself.",
                since=call.created_at,
            )
        elif call.state == "sent" and facts.at - call.created_at >= LONG_UNDER_WAY:
            yield CauseAnswer(
                cause="call_under_way",
                why=f"{name} is under way and not answered.",
                do="Nothing: it is given up at its deadline and tried again.",
                since=call.created_at,
            )


OBSTACLES: Final[Mapping[str, tuple[str, str]]] = {
    "milestone_blocked": (
        "The launch cannot go on at {subject}: {said}.",
        "The merchant does what it names; the launch looks again by itself within ten minutes.",
    ),
    "milestone_failed": (
        "The launch gave {subject} up: {said}.",
        "Mend what it says, then run the milestone again on the launch's page.",
    ),
    "payment_failing": (
        "The organization's subscription {subject} is {said}: its last payment failed.",
        "The merchant pays or changes the card at /billing; until then the plan's limits may fall.",
    ),
    "credits_used_up": (
        "The organization has no credits left: chat, texts of the launch and embeddings stop.",
        "The merchant buys credits at /billing, or waits for the plan's next allowance.",
    ),
    "deal_disputed": (
        "The deal {subject} about this store is in dispute ({said}).",
        "Decide it at /api/admin/disputes.",
    ),
    "message_given_up": (
        "The message {subject} to the store failed for good: {said}",
        "Mend what it says, then replay the dead letter at /api/admin/dead-letters.",
    ),
    "privacy_overdue": (
        "The request {subject} ({said}) is open for more than 30 days.",
        "Carry out its pending steps at /admin/compliance.",
    ),
}


def _of_obstacles(facts: Facts) -> Iterator[CauseAnswer]:
    for row in facts.obstacles:
        why, do = OBSTACLES[row["cause"]]
        yield CauseAnswer(
            cause=row["cause"],
            why=why.format(subject=row["subject"], said=row["said"] or "no reason given"),
            do=do,
            since=row["since"],
        )
    wanted = {call.lane for call in facts.calls if call.state in {"waiting", "unknown"}}
    for lane in sorted(wanted & facts.full_lanes.keys()):
        yield CauseAnswer(
            cause="lane_full",
            why=f"Every place of the lane {lane} is taken; {facts.full_lanes[lane]} calls of all organizations wait.",
            do=f"Look at /api/admin/calls?lane={lane} for whoever does not answer; turns go round, so that each comes.",
        )


def _of_listing(sold: SoldAnswer) -> Iterator[CauseAnswer]:
    for proof in sold.proofs:
        if proof.state in WELL and not proof.reason:
            continue
        said = f" ({proof.reason})" if proof.reason else ""
        yield CauseAnswer(
            cause="listing_unverified",
            why=f"Revenue of listing {sold.id} at {proof.provider} is {proof.state}{said}.",
            do="The seller's page says what to do; a refusal wants the credentials given anew.",
            since=proof.since,
        )


async def of_store(store_id: str) -> DiagnosisAnswer:
    """Gather what is known of a store, whichever process owns it; raises NotFound."""
    row = await stores.find(service().database, store_id)
    if row is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    parts = (await connections.load(service().database, [store_id]))[store_id]
    shop = parts.connection.shop_domain if parts.connection else None
    listed = await listings_of(row, shop)
    actors = (
        ActorId("store", store_id),
        *(ActorId("listing", sold.id) for sold in listed),
        ActorId("organization", row.organization_id),
    )
    calls = [call for to in actors for call in await calls_of(to)]
    reported = await _inspected(actors[0])
    refused, refused_at = await _refused(shop)
    obstacles = await operations.obstacles(
        service().reports.of(OPERATORS),
        store_id,
        row.organization_id,
        most=SHOWN,
        overdue=OVERDUE_AFTER,
    )
    facts = Facts(
        at=now(),
        store_id=store_id,
        parts=parts,
        listed=listed,
        calls=calls,
        refused=refused,
        refused_at=refused_at,
        status=reported.get("status", UNANSWERED),
        obstacles=obstacles,
        full_lanes=await _full_lanes(),
        footings=await footing.gather(service()),
    )
    return DiagnosisAnswer(
        store=StoreAnswer.read(row),
        shop_domain=shop,
        listings=listed,
        causes=causes_of(facts),
        calls=calls,
        mailbox_depth=reported.get("mailboxDepth", 0),
        oldest_message_seconds=reported.get("oldestMessageSeconds", 0.0),
    )


async def _inspected(to: ActorId) -> Mapping[str, Any]:
    """Look at an actor wherever it is; nothing where no process answers for it, which is a cause itself."""
    try:
        return await Oversight(service().shard, service().runtime).actor("inspect", to)
    except (RuntimeFault, StorageError):
        return {}


async def listings_of(row: StoreRow, shop: str | None) -> list[SoldAnswer]:
    """Say which listings sell a store or are backed by its shop, and how far their revenue is proven."""
    reader = service().reports.of(OPERATORS)
    found = await listings.listings_of_store(reader, row.id, row.organization_id, shop)
    return [SoldAnswer.of(view) for view in found]


async def calls_of(to: ActorId) -> list[CallAnswer]:
    """Read an actor's calls to the outside as they stand, wherever they are being made."""
    reported = await _inspected(to)
    rows = await operations.calls_of(service().reports.of(OPERATORS), *to, SHOWN)
    return [CallAnswer.of(to, row, set(reported.get("atWorkOn", ()))) for row in rows]


async def _full_lanes() -> Mapping[str, int]:
    waiting: Counter[str] = Counter()
    for vitals in (await Oversight(service().shard, service().runtime).vitals()).values():
        waiting.update(
            (vitals or {}).get("waitingCalls", {})
        )  # a release before says nothing of them
    return waiting


async def _refused(shop: str | None) -> tuple[int, datetime | None]:
    if shop is None:
        return 0, None
    reported = await service().shard.call_all("refused_deliveries", shop, seconds=GATHER_SECONDS)
    counted = [one for one in reported.values() if isinstance(one, dict)]
    last = max((datetime.fromisoformat(one["lastAt"]) for one in counted), default=None)
    return sum(one["count"] for one in counted), last
