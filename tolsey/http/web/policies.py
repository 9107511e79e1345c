"""Every rate limit of the service: those that are promised (rules/limits#windows), then the service's own.

A route names its policy from here, so that the catalogue is the whole truth. Whose calls count
together is said beside each: a user, an organization, or the client's address when no one is signed
in (rules/limits#whose-calls).
"""

from tolsey.actors.organization.plans import Plan
from tolsey.storage.limits import Policy

MINUTE, HOUR, DAY = 60, 3_600, 86_400

REVENUE_REFRESH = Policy("revenue-refresh", 20, HOUR)
"""On-demand revenue refresh, of a user."""
CHAT = Policy("chat", 60, MINUTE)
"""Chat messages, of a user."""
CREDIT_PURCHASE = Policy("credit-purchase", 10, HOUR)
"""Attempts to buy credits, of an organization."""
AFFILIATE_REDEEM = Policy("affiliate-redeem", 3, HOUR)
"""Attempts to redeem an affiliate's code, of a user."""
ACCOUNT_CREATION = Policy("account-creation", 5, DAY)
"""Accounts made, of an address."""
MCP_FLOOD = Policy("mcp-flood", 100, MINUTE)
"""The flood guard before anyone is known, of an address."""

LOGINS = Policy("logins", 60, MINUTE)
"""Attempts to sign in, of an address."""
LOGINS_PER_ACCOUNT = Policy("logins-per-account", 20, 900)
"""Attempts to sign in to one account, of an address."""
PASSWORD_MAILS = Policy("password-mails", 20, HOUR)
"""Mails asked for that choose a new password, of an address."""
PASSWORD_RESETS = Policy("password-resets", 30, HOUR)
"""Links tried that choose a new password, of an address."""
PASSWORD_CHANGES = Policy("password-changes", 10, 900)
"""Attempts to change a password, of a user: each tells whether the old one is right."""
INVITATIONS = Policy("invitations", 50, DAY)
"""Invitations written, of a user: each is a mail to whom they please."""
INVITATIONS_OF_ONE = Policy("invitations-of-one", 3, DAY)
"""Invitations of one address to one organization, whoever writes them."""
INVITATIONS_ACCEPTED = Policy("invitations-accepted", 60, HOUR)
"""Invitations tried, of a user."""
API_KEYS = Policy("api-keys", 30, HOUR)
"""API keys made, of a user."""
BILLING = Policy("billing", 60, HOUR)
"""Checkouts, changes of the plan, and visits to the processor's pages, of a user."""
STORE_CREATION = Policy("store-creation", 60, HOUR)
"""Stores made, of a user."""
EXPORTS = Policy("exports", 20, DAY)
"""Exports of stores written to files, of a user: each is kept for a week."""
MEMORY = Policy("memory", 120, MINUTE)
"""What a store is told to remember and asked about, of a user."""
PRIVACY = Policy("privacy", 60, HOUR)
"""Customers whose data is asked for or erased, of a user."""
ORDER_IMPORTS = Policy("order-imports", 20, DAY)
"""Imports of orders begun or gone on with, of a user: each is an export at the platform."""
LAUNCH = Policy("launch", 120, HOUR)
"""Launches begun, milestones run and decided, of a user: each may call a shop."""
STORE_CONNECT = Policy("store-connect", 60, HOUR)
"""Connections of stores, of a user: each is a call to a shop of the caller's choice."""
LISTING_CREATION = Policy("listing-creation", 60, HOUR)
"""Listings made, of a user."""
REVENUE_CONNECT = Policy("revenue-connect", 30, HOUR)
"""Revenue sources tried, of a user: each is a call to a shop of the caller's choice."""
DEAL_ACCESS = Policy("deal-access", 30, HOUR)
"""Sellers asked for access, of a user: each is written to."""
DEAL_FILES = Policy("deal-files", 200, HOUR)
"""Files put into data rooms, of a user."""
SIGNATURE_CHECKS = Policy("signature-checks", 60, HOUR)
"""Signatures computed again, of a user or an address: each has a PDF checked."""
SIGNATURE_SHARES = Policy("signature-shares", 30, DAY)
"""Links made for strangers who are to check a signature, of a user."""
LISTING_VIEWS = Policy("listing-views", 1, DAY)
"""Times that somebody who looks at a listing is counted, of a user or an address and a listing."""
PAYOUT_LINKS = Policy("payout-links", 30, HOUR)
"""Pages of the processor's made for a payout account, of a user."""
PAYOUT_LOOKS = Policy("payout-looks", 10, MINUTE)
"""Times that the processor is asked how far a payout account is, of a user."""
AGENT_REGISTRATION = Policy("agent-registration", 600, MINUTE)
"""Clients that register themselves, of an address: a hosted agent does so for each merchant, from the
same few addresses. What clients cost is bounded by how many are kept; this only keeps one address from
pushing out another's client within the ten minutes that its user has to decide."""
AGENT_REQUESTS = Policy("agent-requests", 60, MINUTE)
"""Authorization requests, of an address: each may fetch a document of the client's choice."""
AGENT_TOKENS = Policy("agent-tokens", 300, MINUTE)
"""Calls of the token endpoint and its neighbours, of an address."""
CSP_REPORT = Policy("csp-report", 60, MINUTE)
"""Reports of browsers, of an address."""
SUPPRESSIONS = Policy("suppressions", 20, HOUR)
"""Owners who ask to be left alone, of an address: each may have a file read at a domain of their choice."""

PREVIEWS = Policy("previews", 120, HOUR)
"""Previews of storefronts asked for, of a user."""
PREVIEW_PAGES = Policy("preview-pages", 600, MINUTE)
"""What is shown in previews of a store: each is a request to its shop."""

STATUS_SUBSCRIPTIONS = Policy("status-subscriptions", 20, HOUR)
"""Addresses that are asked whether they want to be told of trouble, of an address."""

CATALOGUE = (
    REVENUE_REFRESH,
    CHAT,
    CREDIT_PURCHASE,
    AFFILIATE_REDEEM,
    ACCOUNT_CREATION,
    MCP_FLOOD,
    LOGINS,
    LOGINS_PER_ACCOUNT,
    PASSWORD_MAILS,
    PASSWORD_RESETS,
    PASSWORD_CHANGES,
    INVITATIONS,
    INVITATIONS_OF_ONE,
    INVITATIONS_ACCEPTED,
    API_KEYS,
    BILLING,
    STORE_CREATION,
    MEMORY,
    ORDER_IMPORTS,
    PRIVACY,
    LAUNCH,
    STORE_CONNECT,
    LISTING_CREATION,
    REVENUE_CONNECT,
    DEAL_ACCESS,
    DEAL_FILES,
    SIGNATURE_CHECKS,
    SIGNATURE_SHARES,
    LISTING_VIEWS,
    PAYOUT_LINKS,
    PAYOUT_LOOKS,
    AGENT_REGISTRATION,
    AGENT_REQUESTS,
    AGENT_TOKENS,
    CSP_REPORT,
    SUPPRESSIONS,
    PREVIEWS,
    PREVIEW_PAGES,
    STATUS_SUBSCRIPTIONS,
)
"""All but those of MCP calls and of the intelligence API, which follow the plan."""


def mcp(plan: Plan) -> tuple[Policy, ...]:
    """List the policies of an organization's MCP calls by its plan; none when it is unlimited.

    Plans share the names, so that a change of plan changes the limit and keeps the calls.
    """
    return _bounded(("mcp-min", plan.mcp_per_minute, MINUTE), ("mcp-day", plan.mcp_per_day, DAY))


def intelligence(plan: Plan) -> tuple[Policy, ...]:
    """List the policies of an organization's calls of the intelligence API (rules/limits#windows)."""
    return _bounded(
        ("intelligence-min", plan.intelligence_per_minute, MINUTE),
        ("intelligence-day", plan.intelligence_per_day, DAY),
    )


def scans(plan: Plan) -> tuple[Policy, ...]:
    """List the policies of the scans that an organization asks for (rules/limits#windows)."""
    return _bounded(("scans-day", plan.scans_per_day, DAY))


def _bounded(*bounds: tuple[str, int | None, int]) -> tuple[Policy, ...]:
    return tuple(
        Policy(name, limit, seconds) for name, limit, seconds in bounds if limit is not None
    )
