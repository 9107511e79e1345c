"""`tolsey doctor` and the version that the payment processor's endpoint speaks."""

import pytest
import stripe

from tests.http.people import settings_of
from tolsey.commands import doctor
from tolsey.storage.database import Database


@pytest.mark.parametrize(("version", "differs"), [("2024-06-20", True), (None, False)])
async def test_an_endpoint_of_another_version_than_the_package_is_said(
    database: Database, database_url: str, version: str | None, differs: bool
) -> None:
    await database.execute(
        "INSERT INTO payment_events (event_id, type, livemode, created_at, state, api_version)"
        " VALUES ('evt_1', 'invoice.paid', false, now(), 'ignored', $1)",
        version or stripe.api_version,
    )
    found = [one async for one in doctor.of_connections(settings_of(database_url=database_url))]
    said = [one for one in found if one.name == "PAYMENTS_WEBHOOK_SECRET"]
    assert [("2024-06-20" in one.what, one.is_bad) for one in said] == [(True, True)] * differs
