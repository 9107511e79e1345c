"""What a look at the shop says of the milestones that people do (rules/launch#checkpoints).

A condition is `{all|any: [...]}` or `{path, eq|eqPath|nePath|in|notIn|notEndsWith|gte|nonEmpty|exists}`. What is
not there, or null, fulfils none.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.playbook import PLAYBOOK, Checkpoint
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

TEST_ORDER: Final = "launch.test_order"
THEME: Final = "storefront.theme"

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


def is_needed(launch: Launch, built: Collection[str]) -> bool:
    """Tell whether a look at the shop could approve or hint at anything now."""
    return any(_is_looked_for(launch, launch.milestones[id], built) for id, _ in _checkpoints())


def _is_looked_for(launch: Launch, one: LaunchMilestone, built: Collection[str]) -> bool:
    checkpoint = PLAYBOOK.milestones[one.milestone].checkpoint
    if checkpoint is None or one.state != MilestoneState.PENDING:
        return False
    is_its_turn = checkpoint.before_deps or not graph.unmet(launch, one.milestone, built)
    return is_its_turn and not (checkpoint.detect is None and checkpoint.hint is None)


def judged(launch: Launch, probe: str, built: Collection[str], at: datetime) -> Launch:
    """Approve what was found done and whose turn it is; what was undone first has to be found not done."""
    told = {**orjson.loads(probe), "internal": internal(launch, orjson.loads(probe), built)}
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
        "webOrderSinceDeps": None if since is None else recent is not None,
    }


def orders_since(launch: Launch, built: Collection[str]) -> datetime | None:
    """Say from when on an order counts as a test of the whole shop; None before its turn."""
    if graph.unmet(launch, TEST_ORDER, built):
        return None
    before = (launch.milestones[id] for id in PLAYBOOK.milestones[TEST_ORDER].depends_on)
    return max((one.finished_at or one.changed_at for one in before), default=None)


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
