"""Exports that are kept: written once, given to who may see them, and gone in time, in a folder and a bucket."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest

from tests.journeys.conftest import CRON_SECRET, Seller, sign_up
from tests.journeys.strangers import browsing, quiet
from tests.timing import until
from tolsey.sandbox.objects import Bucket
from tolsey.service import Running, running
from tolsey.settings import Settings

CRON = {"Authorization": f"Bearer {CRON_SECRET}"}


class Clock:
    """The service's clock, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def bucket() -> AsyncIterator[Bucket]:
    made = Bucket()
    async with made.serve():
        yield made


@pytest.fixture
async def live(settings: Settings, clock: Clock, tmp_path: Path) -> AsyncIterator[Running]:
    kept = settings.model_copy(update={"data_dir": tmp_path})
    async with running(kept, clock=clock, timers=False, poll_seconds=0.1) as service:
        yield service


@pytest.fixture
async def in_bucket(
    settings: Settings, bucket: Bucket, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Running]:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    kept = settings.model_copy(update={"objects_url": "s3://files/exports"})
    async with running(kept, clock=clock, timers=False, poll_seconds=0.1) as service:
        yield service


async def exported(seller: Seller) -> tuple[str, str]:
    """Have an export written; give the id of its file, and what its bytes come to."""
    answer = await seller.post(f"/api/stores/{seller.store_id}/exports")
    assert answer.status_code == 201, answer.text
    return answer.json()["fileId"], answer.json()["sha256"]


async def address_of(seller: Seller, file_id: str) -> str:
    answer = await seller.browser.get(f"/api/files/{file_id}")
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["url"]
    return url


async def sweep(seller: Seller) -> int:
    answer = await seller.browser.post("/api/cron/retention-sweep", headers=CRON)
    assert answer.status_code == 200, answer.text
    swept: int = answer.json()["outcome"]["files"]
    return swept


async def test_an_export_is_written_listed_given_and_taken_away(
    seller: Seller, live: Running, tmp_path: Path
) -> None:
    await seller.connect()
    await quiet(live)
    file_id, sha256 = await exported(seller)
    listed = (await seller.browser.get(f"/api/stores/{seller.store_id}/exports")).json()["items"]
    assert [one["id"] for one in listed] == [file_id]
    address = await address_of(seller, file_id)
    async with browsing(live) as anyone:
        given = await anyone.get(address)
    direct = await seller.browser.get(f"/api/stores/{seller.store_id}/export")
    # What is asked for later tells of the file that was kept before.
    (kept,) = direct.json()["files"]
    assert kept["sha256"] == sha256
    assert {**direct.json(), "files": []} == given.json()
    assert hashlib.sha256(given.content).hexdigest() == sha256
    assert given.headers["Content-Length"] == str(len(given.content)) == str(listed[0]["size"])
    assert given.headers["Content-Disposition"].startswith("attachment;")
    # Bytes lie below their organization, under what they come to; nobody else of this machine reads them.
    (place,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    assert place.relative_to(tmp_path / "objects").parts == (
        *(seller.organization_id, sha256[:2], sha256),
    )
    assert (tmp_path / "objects").stat().st_mode & 0o077 == 0

    assert (await seller.browser.delete(f"/api/files/{file_id}")).status_code == 204
    assert not place.exists()
    async with browsing(live) as anyone:
        assert (await anyone.get(address)).status_code == 404
    assert (await seller.browser.get(f"/api/files/{file_id}")).status_code == 404


async def test_two_exports_of_the_same_bytes_share_them_until_the_last_one_goes(
    seller: Seller, live: Running, tmp_path: Path
) -> None:
    (one, sha256), other = await exported(seller), "file_of_the_same_bytes"
    keeper = live.service.files
    record = await keeper.find(one)
    assert record is not None
    again = await keeper.keep(
        await keeper.read(record),
        record.size,
        lambda same, _: replace(record, id=other, sha256=same),
    )
    assert again.sha256 == sha256
    await seller.browser.delete(f"/api/files/{one}")
    async with browsing(live) as anyone:
        assert (await anyone.get(await address_of(seller, other))).status_code == 200
    await seller.browser.delete(f"/api/files/{other}")
    assert not [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]


async def test_an_address_works_for_a_minute_and_for_its_file_alone(
    seller: Seller, live: Running, clock: Clock
) -> None:
    (one, _), (other, _) = await exported(seller), await exported(seller)
    address = urlsplit(await address_of(seller, one))
    token = parse_qs(address.query)["token"][0]
    path = f"/api/files/{one}/content"
    async with browsing(live) as anyone:
        assert (await anyone.get(path, params={"token": token})).status_code == 200
        for wrong in ("", token[:-2], token + "A", "v1.k1.AAAA", "x" * 5_000, "\0"):
            refused = await anyone.get(path, params={"token": wrong})
            assert refused.status_code in {400, 404, 414, 431}, wrong
        assert (await anyone.get(path)).status_code == 404
        foreign = await anyone.get(f"/api/files/{other}/content", params={"token": token})
        assert foreign.status_code == 404
        for odd in ("..%2f..%2fetc%2fpasswd", "file_%2e%2e", "../admin"):
            answer = await anyone.get(f"/api/files/{odd}/content", params={"token": token})
            assert answer.status_code in {400, 401, 404}, odd
        clock.ahead = timedelta(seconds=61)
        assert (await anyone.get(path, params={"token": token})).status_code == 404


async def test_no_stranger_learns_of_a_file(seller: Seller, live: Running) -> None:
    file_id, _ = await exported(seller)
    async with browsing(live) as nobody:
        assert (await nobody.get(f"/api/files/{file_id}")).status_code == 401
    async with browsing(live, "127.0.0.2") as browser:
        stranger = await sign_up(browser, "stranger@example.com")
        for method, path in (
            ("GET", f"/api/files/{file_id}"),
            ("DELETE", f"/api/files/{file_id}"),
            ("GET", f"/api/stores/{seller.store_id}/exports"),
            ("POST", f"/api/stores/{seller.store_id}/exports"),
        ):
            answer = await stranger.browser.request(method, path)
            assert answer.status_code == 404, (method, path, answer.text)
        missing = await stranger.browser.get("/api/files/file_0190")
        theirs = await stranger.browser.get(f"/api/files/{file_id}")
        assert missing.json()["detail"] == theirs.json()["detail"]
    assert (await seller.browser.get(f"/api/files/{file_id}")).status_code == 200


async def test_an_export_serves_a_week_and_is_swept_then(
    seller: Seller, clock: Clock, tmp_path: Path
) -> None:
    file_id, _ = await exported(seller)
    assert await sweep(seller) == 0
    clock.ahead = timedelta(days=7, minutes=1)
    assert (await seller.browser.get(f"/api/files/{file_id}")).status_code == 404
    assert await sweep(seller) == 1
    assert not [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]


async def test_a_deleted_store_has_no_exports(seller: Seller) -> None:
    file_id, _ = await exported(seller)
    assert (await seller.browser.delete(f"/api/stores/{seller.store_id}")).status_code == 204
    assert (await seller.browser.get(f"/api/files/{file_id}")).status_code == 404


async def test_in_a_bucket_an_export_is_given_by_the_bucket_itself(
    in_bucket: Running, bucket: Bucket, clock: Clock
) -> None:
    async with browsing(in_bucket) as browser:
        seller = await sign_up(browser)
        file_id, sha256 = await exported(seller)
        kept = f"exports/{seller.organization_id}/{sha256[:2]}/{sha256}"
        assert bucket.objects.keys() == {kept}
        address = await address_of(seller, file_id)
        assert address.startswith(f"{bucket.url}/files/{kept}?")
        async with httpx.AsyncClient() as anyone:
            given = await anyone.get(address)
            assert hashlib.sha256(given.content).hexdigest() == sha256
            bucket.ahead = timedelta(seconds=61)
            assert (await anyone.get(address)).status_code == 403
        bucket.ahead = timedelta()
        clock.ahead = timedelta(days=7, minutes=1)
        assert await sweep(seller) == 1
        assert bucket.objects == {}


async def test_an_export_waits_for_a_bucket_that_is_away(
    in_bucket: Running, bucket: Bucket
) -> None:
    bucket.is_away = True
    answers: list[httpx.Response] = []
    async with browsing(in_bucket) as browser:
        seller = await sign_up(browser)

        async def ask() -> None:
            answers.append(await seller.post(f"/api/stores/{seller.store_id}/exports"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(
                lambda: in_bucket.service.database.fetch(
                    "SELECT FROM outbox WHERE name LIKE '%KeepExport' AND attempts > 0"
                )
            )
            bucket.is_away = False
        await quiet(in_bucket)
        assert answers[0].status_code in {201, 202}
        listed = await browser.get(f"/api/stores/{seller.store_id}/exports")
        assert len(listed.json()["items"]) == 1
    assert len(bucket.objects) == 1
