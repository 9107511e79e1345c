"""A mail server over real sockets that takes mails, or does to them what bad days do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

import anyio
from aiosmtpd.smtp import SMTP, Envelope


@dataclass
class Post:
    """What came in, and what the next mails are met with.

    `answers` are used up one by one: an SMTP answer to the recipient or to the data, or `drop`, which
    closes the connection after the data was read and before it is answered.
    """

    answers: list[str] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    """Every mail whose data was read, whether or not it was answered."""
    recipients: list[str] = field(default_factory=list)
    url: str = ""
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["Post"]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: SMTP(self, enable_SMTPUTF8=True, loop=loop), "127.0.0.1", 0
        )
        self.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def handle_RCPT(  # noqa: N802 - the name and the arguments are aiosmtpd's
        self,
        _server: SMTP,
        _session: Any,
        envelope: Envelope,
        address: str,
        _options: Any,
    ) -> str:
        if self.answers and self.answers[0].startswith("55"):
            return self.answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        parsed = message_from_bytes(cast("bytes", envelope.content), policy=policy.default)
        async with self._came:
            self.mails.append(parsed)
            self.recipients += envelope.rcpt_tos
            self._came.notify_all()
        said = self.answers.pop(0) if self.answers else "250 Taken"
        if said == "drop":
            cast("asyncio.Transport", server.transport).abort()
        return said

    async def received(self, count: int = 1) -> EmailMessage:
        """Wait until so many mails came in all; answer with the last."""
        with anyio.fail_after(240):
            async with self._came:
                await self._came.wait_for(lambda: len(self.mails) >= count)
        return self.mails[count - 1]
