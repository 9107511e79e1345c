"""Bytes are kept by what they come to, in a folder and in a bucket alike."""

import hashlib
import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.http.files.emptied import is_emptied
from tolsey.http.clients.objects import FileTooLarge, ObjectGone, Objects, ObjectsAway
from tolsey.sandbox.objects import Bucket

MIB = 1024 * 1024
LARGE = 100 * MIB
ANN, BOB = "org_ann", "org_bob"


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def many(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // MIB):
        yield b"x" * MIB


async def kept(objects: Objects, tenant: str, *parts: bytes) -> str:
    incoming = await objects.take_in(chunks(*parts), LARGE)
    await objects.settle(incoming, tenant)
    await objects.drop(incoming)
    return incoming.sha256


async def read(objects: Objects, tenant: str, sha256: str) -> bytes:
    return b"".join([chunk async for chunk in await objects.read(tenant, sha256)])


@pytest.fixture
async def bucket() -> AsyncIterator[Bucket]:
    made = Bucket()
    async with made.serve():
        yield made


@pytest.fixture(params=["folder", "bucket"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> Objects:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    url = "s3://files/kept" if request.param == "bucket" else None
    return Objects.of(url, tmp_path)


async def test_what_is_kept_is_read_by_what_it_comes_to(objects: Objects) -> None:
    sha256 = await kept(objects, ANN, b"one ", b"two")
    assert sha256 == hashlib.sha256(b"one two").hexdigest()
    assert await read(objects, ANN, sha256) == b"one two"
    assert await kept(objects, ANN, b"one two") == sha256


async def test_no_tenant_reads_or_learns_of_what_another_one_has(objects: Objects) -> None:
    sha256 = await kept(objects, ANN, b"secret")
    with pytest.raises(ObjectGone):
        await read(objects, BOB, sha256)
    assert await kept(objects, BOB, b"secret") == sha256
    await objects.remove(BOB, sha256)
    assert await read(objects, ANN, sha256) == b"secret"


async def test_what_was_taken_away_is_gone_and_twice_is_once(objects: Objects) -> None:
    sha256 = await kept(objects, ANN, b"gone")
    for _ in range(2):
        await objects.remove(ANN, sha256)
    with pytest.raises(ObjectGone):
        await read(objects, ANN, sha256)


async def test_of_what_is_too_large_nothing_stays(
    objects: Objects, bucket: Bucket, tmp_path: Path
) -> None:
    with pytest.raises(FileTooLarge):
        await objects.take_in(many(40 * MIB), 30 * MIB)
    assert (bucket.objects, bucket.uploads) == ({}, {})
    await is_emptied(tmp_path)


async def test_a_large_file_passes_through_a_small_memory(tmp_path: Path) -> None:
    objects = Objects.of(None, tmp_path)
    await kept(objects, ANN, b"first")  # what is made once is made
    tracemalloc.start()
    try:
        incoming = await objects.take_in(many(LARGE), LARGE)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert incoming.size == LARGE
    assert most < 30 * MIB


@pytest.mark.parametrize(
    ("tenant", "sha256"),
    [
        ("../org_bob", "a" * 64),
        ("org_ann/../org_bob", "a" * 64),
        ("org_ann", "../" + "a" * 61),
        ("org_ann", "A" * 64),
        ("", "a" * 64),
        ("incoming", "a" * 64),
    ],
)
async def test_what_is_no_id_or_no_sum_leads_nowhere(
    objects: Objects, tenant: str, sha256: str
) -> None:
    with pytest.raises(ValueError, match="not a sha256"):
        await objects.read(tenant, sha256)
    with pytest.raises(ValueError, match="not a sha256"):
        await objects.remove(tenant, sha256)


async def test_what_came_in_and_was_left_is_swept_and_the_rest_stays(
    objects: Objects, bucket: Bucket, tmp_path: Path
) -> None:
    sha256 = await kept(objects, ANN, b"kept")
    await objects.take_in(chunks(b"left behind"), LARGE)
    now = datetime.now(UTC)
    assert await objects.sweep_incoming(now - timedelta(days=1)) == 0
    assert await objects.sweep_incoming(now + timedelta(minutes=1)) == 1
    assert await read(objects, ANN, sha256) == b"kept"


async def test_an_upload_whose_process_was_killed_is_swept_from_a_folder(tmp_path: Path) -> None:
    """The store lists no such file, so that it would lie there for good."""
    objects = Objects.in_folder(tmp_path)
    unfinished = tmp_path / "incoming" / "up_1#1"
    unfinished.parent.mkdir()
    unfinished.write_bytes(b"half of a contract")
    now = datetime.now(UTC)
    assert await objects.sweep_incoming(now - timedelta(days=1)) == 0
    assert unfinished.exists()
    assert await objects.sweep_incoming(now + timedelta(minutes=1)) == 1
    assert not unfinished.exists()


async def test_a_bucket_that_is_away_says_so(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    objects = Objects.of("s3://files", tmp_path)
    bucket.secret = "another"
    with pytest.raises(ObjectsAway):
        await kept(objects, ANN, b"x")


async def test_a_signed_address_of_a_bucket_works_for_its_time_and_for_nothing_else(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    objects = Objects.of("s3://files", tmp_path)
    sha256 = await kept(objects, ANN, b"mine")
    other = await kept(objects, BOB, b"theirs")
    address = await objects.address(ANN, sha256, seconds=60)
    assert address is not None
    async with httpx.AsyncClient() as anyone:
        assert (await anyone.get(address)).content == b"mine"
        forged = address.replace(f"{ANN}/{sha256[:2]}/{sha256}", f"{BOB}/{other[:2]}/{other}")
        longer = address.replace("X-Amz-Expires=60", "X-Amz-Expires=6000")
        bare = address.partition("?")[0]
        for wrong in (forged, longer, bare, bucket.url + "/files?list-type=2"):
            assert (await anyone.get(wrong)).status_code == 403, wrong
        assert (await anyone.delete(address)).status_code == 403
        bucket.ahead = timedelta(seconds=61)
        assert (await anyone.get(address)).status_code == 403
