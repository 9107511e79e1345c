"""What operators see of what is owed to shops and their customers, on the page that closes it."""

import httpx
import pytest

from tests.journeys.conftest import SHOP, Seller
from tests.journeys.test_compliance import PLATFORM_SECRET, ROUTES, asked, erased
from tolsey.service import Running
from tolsey.settings import Settings

PAGE = "/admin/compliance"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"commerce_client_secret": PLATFORM_SECRET})


async def test_an_operator_sees_each_clock_has_steps_carried_out_and_closes_with_a_reason(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    assert "Nothing is owed to anyone." in (await operator.get(PAGE)).text
    assert (await seller.browser.get(PAGE)).status_code == 403
    await asked(seller.browser, "redact", ROUTES["redact"])
    await erased(live)
    (row,) = await database.fetch("SELECT id, pending_steps FROM compliance_requests")
    shown = (await operator.get(PAGE)).text
    assert SHOP in shown
    assert "In time" in shown
    assert "commerce-history" in shown
    await database.execute(
        "UPDATE compliance_requests SET received_at = now() - interval '29 days'"
    )
    assert "A month of 28 days is over" in (await operator.get(PAGE)).text
    assert "Nothing is owed" in (await operator.get(f"{PAGE}?shown=overdue")).text

    path = f"{PAGE}/{row['id']}"
    early = await operator.post(f"{path}/handled", data={"reason": "Done."})
    assert (
        early.status_code,
        "The request still has pending steps. Complete them, then try again." in early.text,
    ) == (409, True)
    blank = await operator.post(f"{path}/steps/commerce-history", data={"reason": " "})
    assert (blank.status_code, "Say why, in 500 characters" in blank.text) == (422, True)
    assert (
        await seller.browser.post(f"{path}/handled", data={"reason": "I want."})
    ).status_code == 403
    for step in row["pending_steps"]:
        sent = await operator.post(f"{path}/steps/{step}", data={"reason": "The shop asked."})
        assert sent.headers["location"] == f"{PAGE}?done=step"
    assert "Waits for the next run" in (await operator.get(PAGE)).text
    await erased(live)
    sent = await operator.post(f"{path}/handled", data={"reason": "All is gone."})
    assert (sent.status_code, sent.headers["location"]) == (303, f"{PAGE}?done=closed")
    assert "Nothing is owed" in (await operator.get(PAGE)).text
    assert "Closed" in (await operator.get(f"{PAGE}?shown=all")).text
    (why,) = await database.fetch(
        "SELECT metadata->>'reason' AS reason FROM audit_log WHERE event = 'admin.compliance.handled'"
        " ORDER BY id DESC LIMIT 1"
    )
    assert why["reason"] == "All is gone."
