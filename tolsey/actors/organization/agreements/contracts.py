"""Decisions about plans by contract, and about months that no invoice begins.

rules/plans#contracts (Custom); rules/plans#allowance (the allowance is the same each month
on a yearly cadence) and 4.1.
"""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from tolsey.actors.organization import plans
from tolsey.actors.organization.agreements.messages import (
    ContractPapers,
    ContractTerms,
    ContractView,
    SetContract,
    StartMonth,
)
from tolsey.actors.organization.billing import subscription
from tolsey.actors.organization.ledger import lots
from tolsey.actors.organization.ledger.messages import ResetAllowance, Standing
from tolsey.actors.organization.months import month_of, months_after
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.money.contracts import Contract

CONTRACT = "contract"
"""Who renews an allowance that is by contract."""
SOLD = {plan.code for plan in plans.CATALOGUE if plan.is_sold}


def agree(
    state: OrganizationState, message: SetContract
) -> Decision[OrganizationState, ContractView]:
    """Put an organization under a contract or out of it; its first month begins at once.

    Out of it the plan is the one that a subscription pays for, and Free without one. Terms that
    change within a month add what the month's allowance gains, and take nothing.
    """
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    if state.plan in SOLD:
        raise Conflict(
            "The organization has a paid subscription. Cancel it and wait until it ends before"
            " you set up a contract.",
            code="subscription_exists",
        )
    papers = _papers(state, message)
    if message.terms == _terms(state) and papers == _papers(state):
        return Decision(state, reply=_view(state))
    audit = _audit(state, message)
    if message.terms is None:
        paid = subscription.in_effect(state.subscription) if state.subscription else None
        plan = paid.plan if paid else plans.FREE
        after = replace(state, plan=plan.code, stores_contracted=None, contract=None)
        ended = [replace(one, ended_at=message.at) for one in (state.contract,) if one]
        alone = lots.unrenewed(after, CONTRACT, message.at)
        return Decision(alone.state, reply=_view(after), records=(*ended, audit, *alone.records))
    after, contract = _agreed(state, message.terms, message.at, papers)
    begun = _month(after, StartMonth(message.at))
    records = (contract, audit, *(begun.records if begun else ()))
    return Decision(begun.state if begun else after, reply=_view(after), records=records)


def start_month(state: OrganizationState, message: StartMonth) -> Decision[OrganizationState, bool]:
    """Grant the month's allowance of a contract or of a paid year, once."""
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    begun = _month(state, message)
    if begun is None or begun.state is state:
        return Decision(state, reply=False)
    return Decision(begun.state, reply=True, records=begun.records)


def _month(
    state: OrganizationState, message: StartMonth
) -> Decision[OrganizationState, Standing] | None:
    due = _of_contract(state.contract, message.at) or _of_year(state, message)
    return lots.reset_allowance(state, due) if due and due.allowance else None


def _of_contract(contract: Contract | None, at: datetime) -> ResetAllowance | None:
    if contract is None:
        return None
    month, allowance = month_of(contract.since, at), contract.monthly_allowance
    key = f"allowance:contract:{contract.since.isoformat()}:{month.number}:{allowance}"
    starts_at = months_after(contract.since, month.number)
    return ResetAllowance(
        key=key,
        plan=plans.CUSTOM.code,
        period_start=starts_at,
        period_end=month.ends_at,
        allowance=allowance,
        at=at,
        renewed_by=CONTRACT,
    )


def _of_year(state: OrganizationState, message: StartMonth) -> ResetAllowance | None:
    """Say what a month of a paid year grants; nothing once the plan is another."""
    paid = message.paid
    if paid is None or paid.plan != state.plan or not paid.starts_at <= message.at < paid.ends_at:
        return None
    month = month_of(paid.starts_at, message.at)
    key = (
        f"allowance:{paid.subscription_id}:{paid.starts_at.isoformat()}:{month.number}:{paid.plan}"
    )
    return ResetAllowance(
        key=key,
        plan=paid.plan,
        period_start=months_after(paid.starts_at, month.number),
        period_end=min(month.ends_at, paid.ends_at),
        allowance=plans.monthly_allowance(paid.plan, None),
        at=message.at,
        reference=paid.payment_ref,
        renewed_by=paid.subscription_id,
    )


def _agreed(
    state: OrganizationState, terms: ContractTerms, at: datetime, papers: ContractPapers
) -> tuple[OrganizationState, Contract]:
    """Apply terms; months go on from the contract's first day."""
    contract = Contract(
        organization_id=state.organization_id,
        monthly_allowance=terms.monthly_allowance,
        daily_bonus=terms.daily_bonus,
        since=state.contract.since if state.contract else at,
        ended_at=None,
        kyc=papers.kyc,
        signed_contract=papers.signed_contract,
    )
    after = replace(
        state,
        plan=plans.CUSTOM.code,
        stores_contracted=terms.stores_included,
        contract=contract,
    )
    return after, contract


def _terms(state: OrganizationState) -> ContractTerms | None:
    contract = state.contract
    if contract is None:
        return None
    return ContractTerms(state.stores_contracted, contract.monthly_allowance, contract.daily_bonus)


def _view(state: OrganizationState) -> ContractView:
    since = state.contract.since if state.contract else None
    return ContractView(plan=state.plan, terms=_terms(state), since=since, papers=_papers(state))


def _papers(state: OrganizationState, message: SetContract | None = None) -> ContractPapers:
    """Tell where the papers are filed: where a message says, else where they were before."""
    known = state.contract
    before = ContractPapers(known.kyc, known.signed_contract) if known else ContractPapers()
    given = message.papers if message else before
    return ContractPapers(given.kyc or before.kyc, given.signed_contract or before.signed_contract)


def _audit(state: OrganizationState, message: SetContract) -> AuditRecord:
    def said(terms: ContractTerms | None) -> dict[str, Any] | None:
        if terms is None:
            return None
        return {
            "storesIncluded": terms.stores_included,
            "monthlyAllowance": terms.monthly_allowance,
            "dailyBonus": terms.daily_bonus,
        }

    filed = message.papers
    papers: dict[str, Any] = {} if filed == ContractPapers() else {"papers": asdict(filed)}
    event = "subscription.contracted" if message.terms else "subscription.contract_ended"
    return audit_record(
        event,
        state.organization_id,
        state.organization_id,
        message.user_id,
        reason=message.reason,
        before=said(_terms(state)),
        after=said(message.terms),
        **papers,
    )
