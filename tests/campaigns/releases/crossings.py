"""Which messages went from a process of one release to one of the other: read off the cables to Redis."""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import hiredis

from tests.campaigns.nemesis.services import Service
from tolsey.runtime.shards import frames
from tolsey.storage.runtime.streams import FIELD
from tolsey.storage.sealing.sealed import Vault

MESSAGE = {"ask": "message", "row": "name"}
"""Of the entries of a frame that bring a message: the field that names its class."""


class Crossings:
    """Opens every frame that services send each other, and counts the messages in it by class."""

    def __init__(self, keyring: str, release_of: Callable[[Service], str]) -> None:
        self._vault = Vault.from_keys(keyring)
        self._release_of = release_of
        self._releases: dict[str, str] = {}
        """Which release each process was of that ever sent a frame."""
        self._counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """By the process that sent and the one that was sent to."""
        self._parsers: WeakKeyDictionary[object, Any] = WeakKeyDictionary()

    def watch(self, service: Service) -> None:
        """Read what a service sends to Redis from now on."""
        service.redis.passes = partial(self._passes, service)

    @property
    def between_releases(self) -> Counter[tuple[str, str, str]]:
        """How often each class went from a release to another: the sender's, the receiver's, the class."""
        found = Counter[tuple[str, str, str]]()
        for (sender, receiver), names in self._counts.items():
            there = self._releases.get(receiver)
            if there is not None and self._releases[sender] != there:
                for name, count in names.items():
                    found[self._releases[sender], there, name] += count
        return found

    async def _passes(self, service: Service, line: object, block: bytes) -> None:
        parser = self._parsers.setdefault(line, hiredis.Reader())
        parser.feed(block)
        while command := parser.gets():
            if command[0] == b"XADD" and FIELD in command:
                name = command[1].decode()
                _, _, receiver = name.rsplit(":", 2)
                body = self._vault.unwrap(command[command.index(FIELD) + 1], name)
                self._note(service, receiver, body)

    def _note(self, service: Service, receiver: str, body: bytes) -> None:
        sender, entries = frames.read(body)
        self._releases.setdefault(sender, self._release_of(service))
        for entry in entries:
            field = MESSAGE.get(entry["is"])
            if field is not None:
                name = entry[field].rpartition(".")[2]
                self._counts[sender, receiver][f"{entry['kind']}.{name}"] += 1
