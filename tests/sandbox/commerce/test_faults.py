from typing import Any

import anyio
import httpx
import pytest

SHOP = "{ shop { id } }"


async def test_a_rate_limit_carries_a_fractional_retry_after(app: Any) -> None:
    app.platform.faults.rate_limit(times=2, retry_after="2.0")
    for _ in range(2):
        answer = await app.post(SHOP)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "2.0"
    assert (await app.post(SHOP)).status_code == 200


@pytest.mark.parametrize("status", [500, 503])
async def test_the_platform_fails_as_often_as_told(app: Any, status: int) -> None:
    app.platform.faults.status(status)
    assert (await app.post(SHOP)).status_code == status
    assert (await app.post(SHOP)).status_code == 200


async def test_a_cut_connection_is_a_network_error(app: Any) -> None:
    app.platform.faults.reset()
    with pytest.raises(httpx.RemoteProtocolError):
        await app.post(SHOP)
    assert (await app.post(SHOP)).status_code == 200


async def test_garbage_is_not_json(app: Any) -> None:
    app.platform.faults.garbage()
    answer = await app.post(SHOP)
    assert answer.status_code == 200
    with pytest.raises(ValueError, match="Expecting value"):
        answer.json()


async def test_a_held_answer_comes_when_it_is_released(app: Any) -> None:
    release = app.platform.faults.hold()
    answers: list[int] = []

    async def ask() -> None:
        answers.append((await app.post(SHOP)).status_code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await app.grant()
        assert answers == []
        release.set()
    assert answers == [200]


async def test_a_slow_answer_runs_into_the_clients_timeout(app: Any) -> None:
    app.platform.faults.slow(seconds=1)
    with pytest.raises(httpx.ReadTimeout):
        await app.client.post("/demo.myshopify.com/admin/api/2026-07/graphql.json", timeout=0.05)


async def test_faults_of_the_grant_leave_the_queries_alone(app: Any) -> None:
    app.platform.faults.status(503, on="token")
    assert (await app.post(SHOP)).status_code == 200
    assert (await app.grant()).status_code == 503
