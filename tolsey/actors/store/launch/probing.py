"""What a look at the shop says of the milestones that people do (rules/launch#checkpoints).

A condition is `{all|any: [...]}` or `{path, eq|eqPath|nePath|in|notIn|notEndsWith|gte|nonEmpty|exists}`. What is
not there, or null, fulfils none.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.playbook import PLAYBOOK, Checkpoint
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

TEST_ORDER: Final = "launch.test_order"
THEME: Final = "storefront.theme"
PRODUCTS: Final = "catalog.products"
TAX: Final = "operations.tax"
POLICIES: Final = "legal.policies"
AUDIT: Final = "foundation.audit"
PREFLIGHT: Final = "launch.preflight"
UNLOCK: Final = "launch.unlock"
OPENED_EARLY: Final = "opened_early"
TEST_MODE_ON: Final = "test_mode_on"
RECENT: Final = timedelta(days=30)
"""A live order that was paid so lately says that somebody takes payments for the shop."""
TAXED_EVERY: Final = timedelta(hours=1)
"""A calculated order costs the platform much: one an hour at most (rules/launch#checkpoints)."""
WATCHED_FOR: Final = timedelta(days=7)
"""So long after it opened a store is looked at for test orders, of the last day each time."""
LAST_DAY: Final = timedelta(days=1)

Condition = Mapping[str, Any]
Probe = Mapping[str, Any]


def is_fulfilled(condition: Condition, probe: Probe) -> bool:
    """Tell whether what was found fulfils a condition."""
    if "all" in condition:
        return all(is_fulfilled(one, probe) for one in condition["all"])
    if "any" in condition:
        return any(is_fulfilled(one, probe) for one in condition["any"])
    found = _at(condition["path"], probe)
    # A null never approves.
    if found is None:
        return False
    (name, wanted), *_ = ((key, value) for key, value in condition.items() if key != "path")
    if name.endswith("Path"):
        wanted = _at(wanted, probe)
        if wanted is None:
            return False
    return _TESTS[name](found, wanted)


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda found, wanted: bool(found == wanted),
    "eqPath": lambda found, wanted: bool(found == wanted),
    "nePath": lambda found, wanted: bool(found != wanted),
    "in": lambda found, wanted: found in wanted,
    "notIn": lambda found, wanted: found not in wanted,
    "notEndsWith": lambda found, wanted: not str(found).endswith(wanted),
    "gte": lambda found, wanted: isinstance(found, int) and found >= wanted,
    "nonEmpty": lambda found, wanted: bool(str(found).strip()) is bool(wanted),
    "exists": lambda _found, wanted: bool(wanted),
}


def _at(path: str, probe: Probe) -> Any:
    """Find what stands at a path; None where it ends early."""
    found: Any = probe
    for part in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and part.isdigit():
            found = found[int(part)] if int(part) < len(found) else None
        else:
            return None
    return found


def detected(probe: Probe) -> Iterator[str]:
    """Name the milestones that a look finds done, whatever they depend on."""
    for id, checkpoint in _checkpoints():
        if checkpoint.detect is not None and is_fulfilled(checkpoint.detect, probe):
            yield id


def hinted(probe: Probe) -> Iterator[str]:
    """Name the milestones that look as if they were done, which only a person can say."""
    for id, checkpoint in _checkpoints():
        if checkpoint.hint is not None and is_fulfilled(checkpoint.hint, probe):
            yield id


def _checkpoints() -> Iterator[tuple[str, Checkpoint]]:
    for id, one in PLAYBOOK.milestones.items():
        if one.checkpoint is not None:
            yield id, one.checkpoint


def is_needed(launch: Launch, built: Collection[str], at: datetime) -> bool:
    """Tell whether a look at the shop could approve anything, hint at it or raise an alarm now."""
    is_awaited = any(
        _is_looked_for(launch, launch.milestones[id], built) for id, _ in _checkpoints()
    )
    return is_awaited or _may_open_early(launch) or opened_at(launch, at) is not None


def _may_open_early(launch: Launch) -> bool:
    """Tell whether the store was closed when the launch began, and should be still."""
    audited = launch.milestones[AUDIT].result
    if audited is None or launch.milestones[PREFLIGHT].state in graph.DONE:
        return False
    return bool(orjson.loads(audited)["shop"].get("hasPassword"))


def opened_at(launch: Launch, at: datetime) -> datetime | None:
    """Say when the store opened, while it is watched for test orders since."""
    one = launch.milestones[UNLOCK]
    if one.state not in graph.DONE or one.finished_at is None or at - one.finished_at > WATCHED_FOR:
        return None
    return one.finished_at


def alarms(launch: Launch, probe: Probe, asked_since: datetime | None, at: datetime) -> list[str]:
    """Name what people have to know of what a look found (rules/launch#alarms)."""
    found = list[str]()
    is_open = _at("onlineStore.passwordProtection.enabled", probe) is False
    if is_open and _may_open_early(launch):
        found.append(OPENED_EARLY)
    opened = opened_at(launch, at)
    # A look that was begun before the store opened counts orders that were rightly tests.
    if opened is not None and asked_since is not None and asked_since >= opened:
        tests = _at("test.count", probe) or 0
        found += [TEST_MODE_ON] if tests > 0 else []
    return found


def is_taxed_again(launch: Launch, built: Collection[str], at: datetime) -> bool:
    """Tell whether an order at home is to be calculated, for the person who confirms the taxes."""
    one, last = launch.milestones[TAX], launch.head.taxed_at
    is_open = one.state == MilestoneState.PENDING and not graph.unmet(launch, TAX, built)
    return is_open and (last is None or at - last >= TAXED_EVERY)


def variant(launch: Launch) -> str | None:
    """Name something that the launch made, for an order to be calculated of."""
    made = orjson.loads(launch.milestones[PRODUCTS].result or "{}")
    variants = (one["id"] for product in made.get("products", ()) for one in product["variants"])
    return next(variants, None)


def _is_looked_for(launch: Launch, one: LaunchMilestone, built: Collection[str]) -> bool:
    checkpoint = PLAYBOOK.milestones[one.milestone].checkpoint
    if checkpoint is None or one.state != MilestoneState.PENDING:
        return False
    is_its_turn = checkpoint.before_deps or not graph.unmet(launch, one.milestone, built)
    return is_its_turn and not (checkpoint.detect is None and checkpoint.hint is None)


def judged(
    launch: Launch,
    probe: str,
    built: Collection[str],
    *,
    asked_since: datetime | None,
    at: datetime,
) -> Launch:
    """Approve what was found done and whose turn it is; what was undone first has to be found not done."""
    seen, since = orjson.loads(probe), orders_since(launch, built)
    # What was asked before the turn of the test order counts orders that test nothing.
    if since is not None and (asked_since is None or asked_since < since):
        seen = {name: block for name, block in seen.items() if name not in {"test", "recent"}}
    told = {**seen, "internal": internal(launch, seen, built)}
    done, hints = frozenset(detected(told)), frozenset(hinted(told))
    changed = list[LaunchMilestone]()
    for id, _ in _checkpoints():
        one = launch.milestones[id]
        if not _is_looked_for(launch, one, built):
            continue
        after = replace(one, is_hinted=id in hints, is_held=one.is_held and id in done)
        if id in done and not one.is_held:
            after = graph.moved(after, "checkpoint_detected", at, finished_at=at)
        if after != one:
            changed.append(replace(after, changed_at=at))
    return launch.with_milestone(*changed) if changed else launch


def internal(launch: Launch, probe: Probe, built: Collection[str]) -> Probe:
    """Say what we know ourselves of what conditions are about; what nobody found out is null."""
    since = orders_since(launch, built)
    recent = _at("recent.nodes.0.id", probe)
    prepared = orjson.loads(launch.milestones[THEME].result or "{}")
    return {
        "brandKit": {
            "draftHash": launch.head.draft_hash,
            "approvedHash": launch.head.approved_hash,
        },
        "theme": {
            "preparedId": prepared.get("themeId"),
            "mainIdAtPreparation": prepared.get("mainThemeId"),
        },
        "preflight": {"taxLines": launch.head.tax_lines},
        "policies": _policies(launch, probe),
        "recentLivePaidOrder": None if "recent" not in probe else recent is not None,
        "webOrderSinceDeps": None if since is None else recent is not None,
    }


def _policies(launch: Launch, probe: Probe) -> Probe | None:
    """Say whether every policy that the shop needs is there, and was saved by somebody after our draft.

    One that was there before our draft was not written by us at all.
    """
    one, told = launch.milestones[POLICIES], _at("shop.shopPolicies", probe)
    if one.result is None or one.finished_at is None or told is None:
        return None
    result = orjson.loads(one.result)
    saved = {policy["type"]: datetime.fromisoformat(policy["updatedAt"]) for policy in told}
    return {
        "allRequiredPresent": saved.keys() >= {*result["drafted"], *result["kept"]},
        "editedAfterDraft": all(
            saved.get(kind, one.finished_at) > one.finished_at for kind in result["drafted"]
        ),
    }


def orders_since(launch: Launch, built: Collection[str]) -> datetime | None:
    """Say from when on an order counts as a test of the whole shop; None before its turn."""
    if graph.unmet(launch, TEST_ORDER, built):
        return None
    before = (launch.milestones[id] for id in PLAYBOOK.milestones[TEST_ORDER].depends_on)
    return max((one.finished_at or one.changed_at for one in before), default=None)


def asked_since(launch: Launch, built: Collection[str], at: datetime) -> datetime:
    """Say from when on orders are asked for: tests once the store is open, the test of it all, or live ones before."""
    opened = opened_at(launch, at)
    if opened is not None:
        return max(opened, at - LAST_DAY)
    return orders_since(launch, built) or at - RECENT


BLOCKS: Final[Mapping[str, str]] = {
    "policies": "read_legal_policies",
    "orders": "read_orders",
    "products": "read_products",
    "themes": "read_themes",
    "payments": "read_shopify_payments_accounts",
}
"""The parts of a look, and the permission that each takes: a field that is refused may blank the whole answer."""


def variables(launch_id: str, since: datetime, left_out: Collection[str]) -> dict[str, Any]:
    """Say what is asked of the shop, without the parts that its grant does not cover."""
    moment = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "testOrders": f"test:true created_at:>='{moment}'",
        "since": (f"test:false financial_status:paid source_name:web created_at:>='{moment}'"),
        "ours": f"tag:{launch_id} status:active",
        **{block: block not in left_out for block in BLOCKS},
    }
