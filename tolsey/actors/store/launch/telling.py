"""Decisions about what a merchant tells of a store whose launch is under way."""

from typing import Final

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.dispatching import Silence, advanced
from tolsey.actors.store.launch.keeping import (
    audit,
    launch_of,
    modules_of,
    remembered,
    told_password,
)
from tolsey.actors.store.launch.launching import BRAND_APPROVAL
from tolsey.actors.store.launch.messages import ChangeLaunchSpec, KeepOnboardingAnswers
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision
from tolsey.storage.records.commerce.launches import (
    Launch,
    LaunchMilestone,
    MilestoneState,
    StoreContextModule,
)

PRODUCTS: Final = "catalog.products"
BRAND_KIT: Final = "brand.kit"
PAGES: Final = "storefront.pages"
POLICIES: Final = "legal.policies"
LEGAL_REVIEW: Final = "legal.review"
MISSING_INPUT: Final = "missing_input"
OF_THE_SPEC: Final = (
    BRAND_KIT,
    "operations.location",
    "operations.shipping",
    PRODUCTS,
    PAGES,
    POLICIES,
)
"""What was made by what the merchant told, and is made anew by what they tell now."""
ENDED: Final = frozenset({MilestoneState.SUCCEEDED, MilestoneState.FAILED})


def change(state: StoreState, message: ChangeLaunchSpec, facts: Facts) -> Silence:
    """Take what the merchant tells now in place of what they told; what was made by it is made anew.

    What they changed in the shop themselves stays: an executor looks before it writes.
    """
    launch = told_password(launch_of(state), message)
    if launch.head.digest == message.digest:
        return advanced(state, launch, message.at, reply=None)
    products = launch.milestones[PRODUCTS]
    # Products stand in the shop as they were told: from then on they are changed there (rules/launch#playbook).
    # A form that named none can be mended.
    is_bare = (products.state, products.reason) == (MilestoneState.FAILED, MISSING_INPUT)
    is_begun = products.attempts or products.state in {
        MilestoneState.RUNNING,
        MilestoneState.SUCCEEDED,
    }
    if is_begun and not is_bare:
        raise Conflict(
            "Products were already created from your earlier answers. Change them in the"
            " Shopify admin.",
            code="products_made",
        )
    again = [
        graph.run_again(launch.milestones[id], message.at)
        for id in OF_THE_SPEC
        if _is_made_anew(launch, launch.milestones[id])
    ]
    launch = launch.with_head(digest=message.digest, changed_at=message.at)
    launch = launch.with_milestone(*again)
    state, told = remembered(state, launch, message.facts, facts, message.at)
    records = (
        *told,
        *modules_of(launch, message.modules, message.at),
        audit(state, "told_anew", message.user_id, launchId=launch.head.launch_id),
    )
    return advanced(state, launch, message.at, reply=None, records=records)


def keep_answers(state: StoreState, message: KeepOnboardingAnswers) -> Silence:
    """Keep what was answered so far, before anything is begun of it."""
    if state.organization_id is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    kept = StoreContextModule(
        store_id=state.store_id,
        organization_id=state.organization_id,
        module=message.module,
        value=message.value,
        changed_at=message.at,
    )
    return Decision(state, reply=None, records=(kept,))


def _is_made_anew(launch: Launch, one: LaunchMilestone) -> bool:
    # A brand and legal texts that a person approved stay until they undo that (rules/launch#checkpoints).
    decision = {BRAND_KIT: BRAND_APPROVAL, POLICIES: LEGAL_REVIEW}.get(one.milestone)
    is_decided = decision is not None and launch.milestones[decision].state in graph.DONE
    return one.state in ENDED and not is_decided
