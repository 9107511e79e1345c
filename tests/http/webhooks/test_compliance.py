"""What is refused before a request is kept, and how an archive is emptied."""

from datetime import datetime

import pytest

from tests.http.webhooks.merchant import NOON, call
from tolsey.http.privacy.opening import PrivacyRequests
from tolsey.http.webhooks.compliance import ComplianceRequests
from tolsey.http.webhooks.signatures import sign
from tolsey.storage.chat.vectors import DatabaseVectors
from tolsey.storage.commerce.shop_erasure import without_values
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.compliance import ComplianceTopic
from tolsey.storage.sealing.sealed import Vault

BODY = b'{"shop_id":1,"shop_domain":"demo.myshopify.com"}'


def noon() -> datetime:
    return NOON


@pytest.mark.parametrize(
    ("secret", "status", "code"),
    [
        (None, 503, "missing_credential"),
        ("", 503, "missing_credential"),
        ("x", 401, "invalid_signature"),
    ],
)
async def test_only_the_secret_that_is_set_proves_a_request(
    database: Database, vault: Vault, secret: str | None, status: int, code: str
) -> None:
    app = ComplianceRequests(
        ComplianceTopic.SHOP_REDACT,
        PrivacyRequests(database, vault, noon),
        DatabaseVectors(database),
        platform_secret=secret,
    )
    headers = [(b"x-shopify-hmac-sha256", sign(BODY, "platform").encode())]
    answered = await call(app, BODY, headers)
    assert (answered.status, answered.json["code"]) == (status, code)
    assert await database.fetch("SELECT FROM compliance_requests") == []


def test_an_archive_keeps_its_keys_and_nothing_that_stood_under_them() -> None:
    told = {"id": 1, "who": {"name": "Dora", "tags": ["a", {"b": "c"}]}, "none": None, "on": True}
    emptied = {
        "id": None,
        "who": {"name": None, "tags": [None, {"b": None}]},
        "none": None,
        "on": None,
    }
    assert without_values(told) == emptied
    assert without_values(emptied) == emptied
