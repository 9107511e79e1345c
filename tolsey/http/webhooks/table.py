"""Every address that other services post to, and who answers there."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from tolsey.actors.organization.effects import PaymentInbox
from tolsey.actors.ports import Vectors
from tolsey.http.privacy.opening import PrivacyRequests
from tolsey.http.web.edge import ASGIApp
from tolsey.http.webhooks.commerce import CommerceEvents, Mailboxes
from tolsey.http.webhooks.compliance import COMPLIANCE_PATHS, ComplianceRequests
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.http.webhooks.payments.receiver import PaymentEvents
from tolsey.http.webhooks.providers.kinds import KINDS
from tolsey.http.webhooks.providers.receiver import ProviderEvents
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.compliance import ComplianceTopic
from tolsey.storage.sealing.sealed import Vault

EVENTS_PATH: Final = "/api/webhooks/commerce/events"
PAYMENTS_PATH: Final = "/api/webhooks/payments"


def receivers(
    settings: Settings,
    mailboxes: Mailboxes,
    directory: ShopDirectory,
    inbox: PaymentInbox,
    *,
    vectors: Vectors,
    database: Database,
    vault: Vault,
    clock: Callable[[], datetime],
) -> dict[str, ASGIApp]:
    """Receive what the commerce platform, the payment processor and other providers post."""
    requests = PrivacyRequests(database, vault, clock)
    asked = {
        COMPLIANCE_PATHS[topic]: ComplianceRequests(
            topic, requests, vectors, platform_secret=settings.commerce_client_secret
        )
        for topic in ComplianceTopic
    }
    provided = {
        kind.path: ProviderEvents(
            kind,
            database,
            vault,
            clock,
            secret=getattr(settings, kind.setting.lower()),
            missing=next((one for one in kind.needs if not getattr(settings, one.lower())), None),
            form=settings.wire_form,
        )
        for kind in KINDS
    }
    return {
        **asked,
        **provided,
        EVENTS_PATH: CommerceEvents(mailboxes, directory, requests, clock),
        PAYMENTS_PATH: PaymentEvents(
            inbox,
            clock,
            webhook_secret=settings.payments_webhook_secret,
            secret_key=settings.payments_secret_key,
        ),
    }
