"""The plan catalogue (specification, "Plan catalog"; contract section 3 has the stores included)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan; `stores_included` is None where a contract says it."""

    code: str
    stores_included: int | None


CATALOGUE = (
    Plan("free", 1),
    Plan("pro", 3),
    Plan("max_5x", 10),
    Plan("max_20x", 50),
    Plan("custom", None),
)
BY_CODE = {plan.code: plan for plan in CATALOGUE}


def stores_included(code: str, contracted: int | None) -> int | None:
    """Tell how many stores a plan includes; None means no bound, as for a contract without one."""
    plan = BY_CODE[code]
    return contracted if plan.stores_included is None else plan.stores_included


def proposed_for(stores: int) -> str:
    """Name the smallest plan that includes so many stores; past the catalogue it is by contract."""
    for plan in CATALOGUE:
        if plan.stores_included is not None and plan.stores_included >= stores:
            return plan.code
    return "custom"
