"""Operators see what goes by its age, and how much of it is due."""

import pytest

from tests.http.people import SignUp, made_operator
from tolsey.http.app import create_app
from tolsey.http.operators.obligations import retention as retention_routes
from tolsey.http.people import auth
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, retention_routes.routes], {})


async def test_each_rule_says_how_long_and_how_many_are_due(
    sign_up: SignUp, database: Database
) -> None:
    person = await sign_up()
    assert (await person.browser.get("/api/admin/retention")).status_code == 403
    operator = await made_operator(database, person)
    await database.execute(
        "INSERT INTO commerce_webhook_events SELECT 's', n::text, 't', NULL, 'd', NULL,"
        " now() - n * interval '3 days' FROM generate_series(1, 5) n"
    )
    answer = await operator.browser.get("/api/admin/retention")
    assert answer.status_code == 200, answer.text
    rules = answer.json()["items"]
    (deliveries,) = [one for one in rules if one["table"] == "commerce_webhook_events"]
    assert deliveries == {
        "table": "commerce_webhook_events",
        "column": "created_at",
        "keptFor": "7 days",
        "which": None,
        "job": "prune-webhook-deliveries",
        "counter": "deleted",
        "due": 3,
        "more": False,
    }
    kept = {(one["table"], one["keptFor"]) for one in rules}
    assert kept > {
        ("audit_log", "180 days"),
        ("audit_log", "7 years"),
        ("users", "30 days"),
        ("organizations", "365 days"),
        ("cron_executions", "90 days"),
    }
    assert len(await database.fetch("SELECT FROM commerce_webhook_events")) == 5
