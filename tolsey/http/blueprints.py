"""The routes and pages of every feature, as the application and its API document list them."""

from collections.abc import Sequence
from typing import Final

from quart import Blueprint

from tolsey.http import operations
from tolsey.http.billing import (
    affiliate,
    contracts,
    credits,
    payment_events,
    payments,
    payouts,
    plans,
    refunds,
    sponsor,
)
from tolsey.http.billing import pages as billing
from tolsey.http.chat import pages as chat_pages
from tolsey.http.chat import routes as chat
from tolsey.http.deals import disputes, drafts, offers, signing_routes, threads
from tolsey.http.deals.evidence import routes as deal_evidence
from tolsey.http.deals.pages import asking as access_pages
from tolsey.http.deals.pages import certificate as certificates
from tolsey.http.deals.pages import moving as deal_moves
from tolsey.http.deals.pages import offering as deal_offer_pages
from tolsey.http.deals.pages import room as deal_pages
from tolsey.http.deals.pages import sale as sale_pages
from tolsey.http.deals.pages import signing as deal_papers
from tolsey.http.deals.room import routes as data_rooms
from tolsey.http.description import guides, reference
from tolsey.http.files import routes as files
from tolsey.http.home import lists as list_pages
from tolsey.http.home import pages as home
from tolsey.http.home import trading as trading_pages
from tolsey.http.intelligence import (
    calibrating,
    callback,
    competitors,
    downloads,
    opting_out,
    scans,
)
from tolsey.http.intelligence import pages as competitor_pages
from tolsey.http.intelligence import routes as intelligence
from tolsey.http.launch import cockpit, live, registry
from tolsey.http.launch import routes as launch
from tolsey.http.launch.devstores import pool, pool_pages
from tolsey.http.launch.devstores import routes as devstores
from tolsey.http.launch.onboarding import pages as onboarding
from tolsey.http.launch.onboarding import scope_plan
from tolsey.http.mail import pages as mail_pages
from tolsey.http.market import pages as market_pages
from tolsey.http.market import selling_accounts, watching
from tolsey.http.memory import pages as memory_pages
from tolsey.http.memory import routes as memory
from tolsey.http.oauth import pages as consent
from tolsey.http.oauth import routes as oauth
from tolsey.http.operators import (
    admin,
    cron,
    dead_letters,
    finding,
    mail,
    security,
    shards,
    time_travel,
)
from tolsey.http.operators import live as admin_live
from tolsey.http.operators.console import actor_pages, acts, letter_pages, record, work_pages
from tolsey.http.operators.measures import health, metrics
from tolsey.http.operators.obligations import identities, retention
from tolsey.http.operators.obligations import pages as compliance_pages
from tolsey.http.operators.obligations import requests as compliance
from tolsey.http.people import (
    account,
    account_pages,
    api_keys,
    auth,
    credential_pages,
    invitations,
    member_pages,
    organizations,
)
from tolsey.http.people import pages as accounts
from tolsey.http.privacy import pages as privacy_pages
from tolsey.http.privacy import routes as privacy
from tolsey.http.selling import form_pages as listing_form_pages
from tolsey.http.selling import pages as selling_pages
from tolsey.http.selling import public, public_pages, reviews, sell
from tolsey.http.status import incident_pages, incidents, subscribing
from tolsey.http.status import routes as status
from tolsey.http.stores import change_sets, exports, integrations, order_history, proposals
from tolsey.http.stores import pages as store_pages
from tolsey.http.stores import routes as stores
from tolsey.http.stores.showing import acts as store_acts
from tolsey.http.stores.showing import overview
from tolsey.http.stores.showing import settings as store_settings
from tolsey.http.subaddresses.preview import routes as previews
from tolsey.http.webhooks.providers import routes as provider_events

BLUEPRINTS: Final[Sequence[Blueprint]] = (
    health.routes,
    auth.routes,
    accounts.routes,
    account.routes,
    account_pages.routes,
    billing.routes,
    organizations.routes,
    invitations.routes,
    api_keys.routes,
    intelligence.routes,
    scans.routes,
    competitors.routes,
    competitor_pages.routes,
    downloads.routes,
    callback.routes,
    opting_out.routes,
    calibrating.routes,
    member_pages.routes,
    credential_pages.routes,
    operations.routes,
    plans.routes,
    stores.routes,
    previews.routes,
    proposals.routes,
    proposals.pages,
    change_sets.routes,
    change_sets.pages,
    exports.routes,
    order_history.routes,
    privacy.routes,
    privacy_pages.routes,
    files.routes,
    home.routes,
    list_pages.routes,
    trading_pages.routes,
    store_pages.routes,
    overview.routes,
    store_settings.routes,
    store_acts.pages,
    integrations.routes,
    registry.routes,
    launch.routes,
    scope_plan.routes,
    devstores.routes,
    pool.routes,
    pool_pages.routes,
    live.routes,
    onboarding.routes,
    cockpit.routes,
    memory.routes,
    memory_pages.routes,
    sell.routes,
    selling_accounts.routes,
    reviews.routes,
    public.routes,
    watching.routes,
    selling_pages.routes,
    listing_form_pages.routes,
    public_pages.routes,
    market_pages.routes,
    access_pages.routes,
    deal_pages.routes,
    deal_moves.routes,
    deal_offer_pages.routes,
    deal_papers.routes,
    certificates.routes,
    sale_pages.routes,
    disputes.routes,
    disputes.pages,
    threads.routes,
    offers.routes,
    drafts.routes,
    signing_routes.routes,
    deal_evidence.routes,
    data_rooms.routes,
    credits.routes,
    payments.routes,
    sponsor.routes,
    refunds.routes,
    chat.routes,
    chat_pages.routes,
    contracts.routes,
    payouts.routes,
    payouts.operators,
    affiliate.routes,
    cron.routes,
    admin.routes,
    time_travel.routes,
    admin_live.routes,
    provider_events.routes,
    dead_letters.routes,
    compliance.routes,
    compliance_pages.routes,
    identities.routes,
    retention.routes,
    finding.routes,
    finding.pages,
    actor_pages.routes,
    letter_pages.routes,
    work_pages.routes,
    record.routes,
    acts.routes,
    payment_events.routes,
    shards.routes,
    metrics.routes,
    security.routes,
    status.routes,
    status.documents_routes,
    subscribing.routes,
    incidents.routes,
    incident_pages.routes,
    oauth.routes,
    consent.routes,
    mail.routes,
    mail_pages.routes,
    guides.routes,
    reference.routes,
)
