"""Webhook subscriptions made equal to the catalogue, whatever a topic's refusal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tolsey.actors.ports import (
    PlatformDenied,
    PlatformDocument,
    PlatformUnreachable,
    Shop,
    SubscriptionReport,
)
from tolsey.http.clients.commerce import queries, shapes
from tolsey.http.clients.commerce.answers import Fault, GraphqlAnswer, plain
from tolsey.http.clients.commerce.calls import Calls

Item = TypeVar("Item")

PER_PAGE = 100
MOST_PAGES = 50
# 25 mutations cost about 300 of the 1,000 points one document may ask for
PER_DOCUMENT = 25
TOPIC = re.compile(r"[a-z_]{1,60}/[a-z_]{1,60}")
TAKEN = "already been taken"
# what the platform says when the app lacks the topic's permission, by its threads
UNSCOPED = ("cannot create a webhook subscription with the specified topic", "access denied")
# statuses that may be one topic's fault; the others concern the shop or the token
OF_A_TOPIC = (400, 403)
GONE = ("does not exist", "not found")


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of this app in the shop."""

    id: str
    topic: str
    uri: str
    whole: bool


def enumerated(topic: str) -> str:
    """Spell a topic as the platform's enum does; ValueError for what is no topic."""
    if TOPIC.fullmatch(topic) is None:
        raise ValueError(f"{topic[:60]!r} is not a topic")
    return topic.upper().replace("/", "_")


async def reconcile(
    calls: Calls, shop: Shop, uri: str, topics: Mapping[str, str]
) -> SubscriptionReport:
    """Make the subscriptions that deliver to `uri` exactly `topics`; others are left alone."""
    wanted = {enumerated(topic): topic for topic in topics}
    ours = [each for each in await _existing(calls, shop) if each.uri == uri]
    kept: dict[str, str] = {}
    surplus: list[Subscription] = []
    for each in ours:
        if each.topic in wanted and each.whole and each.topic not in kept:
            kept[each.topic] = "ok"
        else:
            surplus.append(each)
    # first the wrong ones: while they stand, their topic's address is taken
    removed = await _remove(calls, shop, surplus)
    missing = [topic for topic in wanted if topic not in kept]
    outcomes = kept | await _create(calls, shop, uri, missing)
    return SubscriptionReport(
        topics={name: outcomes[topic] for topic, name in wanted.items()},
        removed=tuple(wanted.get(each.topic, each.topic) for each in removed),
    )


async def _existing(calls: Calls, shop: Shop) -> list[Subscription]:
    found: list[Subscription] = []
    variables: dict[str, Any] = {"first": PER_PAGE, "after": None}
    for _ in range(MOST_PAGES):
        data = await calls.ask(shop, queries.SUBSCRIPTIONS, variables)
        page = shapes.page(data.get("webhookSubscriptions"), "the subscriptions")
        found += [_subscription(node) for node in page.nodes]
        if page.after is None:
            return found
        variables = {**variables, "after": page.after}
    raise PlatformUnreachable(
        "The shop has more webhook subscriptions than this service can read. Delete unused ones."
    )


def _subscription(node: Mapping[str, Any]) -> Subscription:
    whole = (
        node.get("format") == "JSON" and not node.get("filter") and not node.get("includeFields")
    )
    return Subscription(
        shapes.text(node.get("id"), "the id of a subscription"),
        shapes.text(node.get("topic"), "the topic of a subscription"),
        str(node.get("uri") or ""),
        whole,
    )


async def _remove(calls: Calls, shop: Shop, surplus: Sequence[Subscription]) -> list[Subscription]:
    """Take subscriptions away and give those that are gone; gone already is as good."""
    removed: list[Subscription] = []
    for some in _batches(surplus):
        variables = {f"id{n}": each.id for n, each in enumerate(some)}
        answer = await calls.ask_partly(
            shop, queries.unsubscribe(len(some)), variables, repeatable=True
        )
        problems = [_problem(answer, f"s{n}") for n in range(len(some))]
        removed += [
            each
            for each, problem in zip(some, problems, strict=True)
            if problem is None or any(words in problem.message for words in GONE)
        ]
    return removed


async def _create(calls: Calls, shop: Shop, uri: str, topics: Sequence[str]) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for some in _batches(topics):
        try:
            outcomes |= await _subscribe(calls, shop, uri, some)
        except PlatformDenied as denied:
            if denied.status not in OF_A_TOPIC:
                raise
            # one topic that this API version does not know refuses the whole document
            for topic in some:
                outcomes[topic] = await _create_alone(calls, shop, uri, topic)
    return outcomes


async def _create_alone(calls: Calls, shop: Shop, uri: str, topic: str) -> str:
    try:
        return (await _subscribe(calls, shop, uri, [topic]))[topic]
    except PlatformDenied as denied:
        if denied.status not in OF_A_TOPIC:
            raise
        return _outcome(Fault("ACCESS_DENIED" if denied.missing_scope else "", denied.message))


async def _subscribe(calls: Calls, shop: Shop, uri: str, topics: Sequence[str]) -> dict[str, str]:
    sent = _document(uri, topics)
    # a second time is answered "already taken", which is as good
    answer = await calls.ask_partly(shop, sent.document, sent.variables, repeatable=True)
    return {topic: _outcome(_problem(answer, f"s{n}")) for n, topic in enumerate(topics)}


def told(uri: str, topics: Sequence[str]) -> list[PlatformDocument]:
    """Say what is sent to make subscriptions to these, and send nothing."""
    return [_document(uri, some) for some in _batches([enumerated(one) for one in topics])]


def _document(uri: str, topics: Sequence[str]) -> PlatformDocument:
    variables: dict[str, Any] = {f"t{n}": topic for n, topic in enumerate(topics)}
    variables["subscription"] = {"uri": uri, "format": "JSON"}
    return PlatformDocument(document=queries.subscribe(len(topics)), variables=variables)


def _problem(answer: GraphqlAnswer, alias: str) -> Fault | None:
    """Find what went wrong with one field of a document: a fault of its own, or a user error."""
    for fault in answer.faults:
        if fault.path[:1] == (alias,):
            return fault
    payload = answer.data.get(alias)
    if not isinstance(payload, dict):
        return (
            answer.faults[0]
            if answer.faults
            else Fault("", "Shopify's response lacks this part. Try again in a minute.")
        )
    errors = payload.get("userErrors")
    if not isinstance(errors, list):
        return Fault("", "Shopify's response lacks this part. Try again in a minute.")
    for error in errors:
        return Fault("", plain(str(error.get("message") if isinstance(error, dict) else error)))
    return None


def _outcome(problem: Fault | None) -> str:
    if problem is None:
        return "created"
    if TAKEN in problem.message:
        return "ok"
    said = problem.message.lower()
    if problem.code == "ACCESS_DENIED" or any(words in said for words in UNSCOPED):
        return "missing_scope"
    return f"refused: {problem.message}"


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), PER_DOCUMENT):
        yield items[start : start + PER_DOCUMENT]
