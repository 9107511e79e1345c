"""What wants somebody is told on one page, across the organizations and stores that they may see."""

import re

import pytest

from tests.http.people import add_member
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.strangers import browsing
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.layout import live as following
from tolsey.service import Running

LAUNCH = """
WITH launch AS (
    INSERT INTO store_launches (store_id, launch_id, organization_id, playbook, digest, begun_at, changed_at)
    VALUES ($1, 'launch_1', $2, '1', '', now(), now())
)
INSERT INTO launch_milestones (store_id, milestone, state, changed_at, run, attempts, step, reason, scope)
SELECT $1, id, CASE id WHEN 'storefront.navigation' THEN 'blocked' WHEN 'foundation.audit' THEN 'succeeded' ELSE 'pending' END,
    now(), 1, 1, 0, CASE id WHEN 'storefront.navigation' THEN 'scope_missing' END,
    CASE id WHEN 'storefront.navigation' THEN 'write_online_store_navigation' END
FROM unnest($3::text[]) AS id
"""
OWED = """
INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores, shop_keys, received_at,
    pending_steps)
VALUES ('cr_1', 'customers/data_request', 'a', '1', '1', ARRAY[$1], '{k}', '2036-06-01', '{}'),
    ('cr_2', 'customers/redact', 'a', '2', '2', ARRAY[$1], '{k}', '2036-06-01', '{}')
"""
PROPOSED = """
INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest, state, created_at)
SELECT $1, 'op_' || n, 'usr_1', 'client', 'refund_order', 'order/' || n, '', 'proposed', now()
FROM generate_series(1, 2) n
"""
UNPAID = "INSERT INTO subscriptions (organization_id, subscription_id, status, dunning_since) VALUES ($1, 'sub_1', 'past_due', now())"


def told(page: str) -> list[tuple[str, str]]:
    """Read what wants doing: each sentence, with where its button leads."""
    (now,) = re.findall(r'aria-labelledby="now">(.*?)</section>', page, re.DOTALL)
    return list(
        zip(
            re.findall(r"<b>(.*?)</b>", now),
            re.findall(r'class="button[^"]*" href="([^"]*)"', now),
            strict=True,
        )
    )


async def test_home_tells_what_wants_somebody_in_all_their_organizations(
    live: Running, seller: Seller
) -> None:
    database = live.service.database
    async with browsing(live, address="192.0.2.7") as elsewhere:
        other = await sign_up(elsewhere, "other@example.com")
        await add_member(database, other.organization_id, "seller@example.com", "admin")
        for sql, given in (
            (LAUNCH, (other.store_id, other.organization_id, list(PLAYBOOK.milestones))),
            (OWED, (other.store_id,)),
            (PROPOSED, (other.store_id,)),
            (UNPAID, (other.organization_id,)),
        ):
            await database.execute(sql, *given)
        page = (await seller.browser.get("/")).text
        launch = f"/stores/{other.store_id}/launch"
        found = {address: said for said, address in told(page)}
        assert found[f"{launch}/storefront.navigation"].endswith("cannot go on")
        assert found[f"/stores/{other.store_id}/proposals"] == "Agents ask you to decide 2 times"
        assert (
            found[f"/stores/{other.store_id}/privacy"]
            == "Send a customer the data you hold on them"
        )
        assert "An invoice could not be collected" in found.values()
        assert "write_online_store_navigation" in page
        assert found[f"/stores/{seller.store_id}/connect"].startswith("Connect ")
        urgent = [said for said, _address in told(page)]
        assert urgent.index("An invoice could not be collected") < urgent.index(
            found[f"/stores/{seller.store_id}/connect"]
        )
        for address in found:
            assert (await seller.browser.get(address, follow_redirects=True)).status_code == 200, (
                address
            )

        await database.execute(
            "UPDATE members SET role = 'member' WHERE organization_id = $1 AND role = 'admin'",
            other.organization_id,
        )
        assert "Agents ask you" not in (await seller.browser.get("/")).text
        await database.execute(
            "DELETE FROM members WHERE organization_id = $1 AND role = 'member'",
            other.organization_id,
        )
        alone = (await seller.browser.get("/")).text
        assert [address for _said, address in told(alone)] == [f"/stores/{seller.store_id}/connect"]


async def test_home_is_followed_by_another_text_once_something_moved(
    live: Running, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0)

    async def events(seen: str) -> list[str]:
        told: list[str] = []
        async with seller.browser.stream("GET", f"/inbox/events?{seen}") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                told.append(line)
                if line.startswith(("id:", "data:", ":")):
                    break
        return told

    page = (await seller.browser.get("/", headers={"Accept": "text/html"})).text
    (seen,) = re.findall(r'data-follows="/inbox/events\?([^"]+)"', page)
    seen = seen.replace("&amp;", "&")
    assert ":" in await events(seen)
    await live.service.database.execute(UNPAID, seller.organization_id)
    assert any(line.startswith("id: ") for line in await events(seen))
    again = (await seller.browser.get("/", headers={"Accept": "text/html"})).text
    assert seen.rpartition("=")[2] not in again
