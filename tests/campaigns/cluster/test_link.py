"""The cable does what the campaign believes that it does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.campaigns.cluster.link import Link

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await reader.read(100):
        writer.write(block)
    writer.close()


@pytest.fixture
async def link(tmp_path: Path) -> AsyncIterator[Link]:
    """A cable to a server that repeats what it is told."""
    server = await asyncio.start_unix_server(echo, str(tmp_path / "echo"))
    async with Link(tmp_path / "echo").standing() as made:
        yield made
    server.close()


async def plug(link: Link) -> Ends:
    return await asyncio.open_connection("127.0.0.1", link.port)


async def say(ends: Ends, words: bytes) -> bytes:
    ends[1].write(words)
    async with asyncio.timeout(5):
        return await ends[0].read(100)


async def dead(ends: Ends) -> bool:
    """Whether the line has been cut: nobody says a word on it any more."""
    try:
        return not await say(ends, b"")
    except ConnectionError:
        return True


async def silent(ends: Ends) -> bool:
    try:
        async with asyncio.timeout(0.1):
            return not await ends[0].read(100)
    except TimeoutError:
        return True


async def test_words_pass(link: Link) -> None:
    ends = await plug(link)
    assert await say(ends, b"hello") == b"hello"
    ends[1].close()


@pytest.mark.parametrize("flow", ["up", "down"])
async def test_what_is_held_arrives_late(link: Link, flow: str) -> None:
    ends = await plug(link)
    link.hold(flow)
    ends[1].write(b"late")
    assert await silent(ends)
    await link.heal()
    assert await say(ends, b"") == b"late"
    ends[1].close()


@pytest.mark.parametrize("flow", ["up", "down"])
async def test_what_is_held_may_be_lost_with_its_connection(link: Link, flow: str) -> None:
    ends = await plug(link)
    link.hold(flow)
    ends[1].write(b"lost")
    assert await silent(ends)
    await link.heal(loses=True)
    assert await dead(ends)
    ends[1].close()


async def test_a_block_that_has_to_wait_holds_up_its_connection_alone(tmp_path: Path) -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def passes(_: object, block: bytes) -> None:
        if block == b"commit":
            asked.set()
            await gate.wait()

    server = await asyncio.start_unix_server(echo, str(tmp_path / "echo"))
    async with server, Link(tmp_path / "echo", passes=passes).standing() as link:
        ends, other = await plug(link), await plug(link)
        ends[1].write(b"commit")
        async with asyncio.timeout(30):
            await asked.wait()
        assert await say(other, b"hello") == b"hello"
        assert await silent(ends)
        gate.set()
        assert await say(ends, b"") == b"commit"
        for one in (ends, other):
            one[1].close()


async def test_a_cut_cable_turns_everyone_away_until_it_is_mended(link: Link) -> None:
    ends = await plug(link)
    assert await say(ends, b"hello") == b"hello"
    await link.cut()
    assert await dead(ends)
    other = await plug(link)
    assert await dead(other)
    await link.heal()
    again = await plug(link)
    assert await say(again, b"hello") == b"hello"
    for one in (ends, other, again):
        one[1].close()
