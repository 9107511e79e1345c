"""The post office: mails are written in the transaction of what they tell of, and sent after it.

A mail is handed to its server at least once, under a Message-ID of its own, so that a repeat is known for
one. What the server refuses is noted with its answer; what it does not take now is tried again for days.
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import structlog

from tolsey.actors.job.messages import job
from tolsey.actors.mail import MailEvent, MailReset, SendMail, TellPeople, WriteDigest
from tolsey.actors.organization.messages import organization
from tolsey.actors.ports import Mail, MailDelayed, MailRefused, MailServer
from tolsey.actors.refusals import MissingCredential
from tolsey.http.layout.catalogue import ENGLISH
from tolsey.http.mail.book import BOOK, MailTopic, Role, StatusMail
from tolsey.http.mail.letters import letter
from tolsey.runtime.decision import Perform
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call
from tolsey.runtime.outbox.rows import row_of
from tolsey.settings import Settings
from tolsey.storage.database import Database, Transaction
from tolsey.storage.people import administrators, resets
from tolsey.storage.people import mail as mails
from tolsey.storage.people.mail import Addressee
from tolsey.storage.records.mail import BounceKind, MailPace, OutboundMail
from tolsey.storage.runtime import outbox
from tolsey.storage.sealing.sealed import SealBroken, Vault, fingerprint

log = structlog.get_logger()

UNSUBSCRIBE: Final = "/mail/unsubscribe"
SEPARATOR: Final = "\n"
DIGEST_AT: Final = time(6, 0, tzinfo=UTC)
"""When the mails of a day are written."""
DIGEST_MARGIN: Final = timedelta(minutes=5)
"""What comes so shortly before waits for the next day's, for clocks differ."""
DIGEST_LINES: Final = 100
"""How many things a day's mail names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a mail says, and the address that ends mails of its topic."""

    text: str
    html: str
    unsubscribe: str | None
    link: str = ""
    """Where its button leads; kept for the day's mail that tells of it."""


def digest_day(at: datetime) -> date:
    """Tell the day whose mail what happens now is told in."""
    soon = (at + DIGEST_MARGIN).astimezone(UTC)
    return soon.date() if soon.timetz() < DIGEST_AT else soon.date() + timedelta(days=1)


class PostOffice:
    """Writes mails down, sends them, and knows who wants no more."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        server: MailServer | None,
        settings: Settings,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._vault = vault
        self._server = server
        self._settings = settings
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Callable[[Any], Awaitable[None]]]:
        """Say which calls this performs."""
        return {
            TellPeople: self.tell_people,
            MailReset: self.mail_reset,
            SendMail: self.send,
            WriteDigest: self.write_digest,
        }

    def require(self) -> None:
        """Refuse what is of no use without a mail: with 503 where none could be read by anyone."""
        # Without MAIL_URL mails are kept, and on loopback a page shows them (rules/service#settings).
        if self._server is None and not self._settings.is_local:
            raise MissingCredential("MAIL_URL" if self._settings.mail_url is None else "MAIL_FROM")

    async def write(
        self,
        tx: Transaction,
        event: MailEvent | StatusMail,
        recipient: str,
        *,
        about: str,
        facts: Mapping[str, str],
        link: str = "",
        organization_id: str | None = None,
        lines: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Write to one person with the commit of what it tells of; once for each `about`.

        What they want once a day waits for the mail of the day, where it is a line.
        """
        topic = BOOK[event].topic
        wanted = await mails.paces(tx, recipient) if topic else {}
        # What is about security, money or law has no topic, and comes at once (rules/service#mails).
        pace = wanted.get(topic, MailPace.AT_ONCE) if topic else MailPace.AT_ONCE
        if pace is MailPace.NEVER:
            return
        unsubscribe = self.unsubscribe_address(recipient, topic) if topic else ""
        language = await mails.language_of(tx, recipient) or ENGLISH
        said = letter(
            event, facts, link=link, unsubscribe=unsubscribe, lines=lines, language=language
        )
        mail_id = new_id("mail")
        day = digest_day(self._clock()) if pace is MailPace.DAILY else None
        content = {"text": said.text, "html": said.html, "unsubscribe": unsubscribe or None}
        if day is not None:
            content["link"] = link
        is_new = await mails.add(
            tx,
            OutboundMail(
                id=mail_id,
                event=event,
                about=about,
                organization_id=organization_id,
                recipient=recipient,
                subject=said.subject,
                sealed_content=self._vault.seal(json.dumps(content), **_place(mail_id)),
                created_at=self._clock(),
                digest_on=day,
            ),
        )
        if not is_new:
            return
        if day is None:
            send = SendMail(mail_id=mail_id, organization_id=organization_id)
            owner = organization(organization_id) if organization_id else job("mail")
            await self._perform(tx, Perform(send, key=f"mail:{mail_id}"), owner)
        else:
            key = f"digest:{day}:{fingerprint(recipient).hex()}"
            due_at = datetime.combine(day, DIGEST_AT)
            write = Perform(WriteDigest(mail_id=mail_id), key=key, due_at=due_at)
            await self._perform(tx, write, job("mail"))

    async def _perform(self, tx: Transaction, effect: Perform, owner: ActorId) -> None:
        """Have a call made after the commit: the poll of the outbox finds it."""
        await outbox.put(tx, [row_of(effect, owner, effect.key, form=self._settings.wire_form)])

    async def write_digest(self, call: WriteDigest) -> None:
        """Write the mail of a day to somebody, and end those that it tells of; what they want no more is left out."""
        first = await mails.find(self._database, call.mail_id)
        if first is None or first.digest_on is None:
            return
        day, recipient = first.digest_on, first.recipient
        async with self._database.transaction() as tx:
            paces = await mails.paces(tx, recipient)
            unwanted = [
                event
                for event, entry in BOOK.items()
                if entry.topic and paces.get(entry.topic) is MailPace.NEVER
            ]
            told = await mails.of_digest(tx, recipient, day, unwanted, DIGEST_LINES)
            answer = f"It is in the mail of {day}."
            count = await mails.end_digested(
                tx, recipient, day, unwanted, answer=answer, at=self._clock()
            )
            if count == 0:
                return
            opened = ((mail.subject, self.content(mail)) for mail in told)
            await self.write(
                tx,
                StatusMail.DAILY_DIGEST,
                recipient,
                about=first.id,
                facts={"count": str(count), "rest": str(count - len(told))},
                link=f"{self._settings.base_url}/",
                lines=[(subject, said.link if said else "") for subject, said in opened],
            )

    async def tell_people(self, call: TellPeople) -> None:
        """Write to everyone whom the address book names for an event."""
        entry = BOOK[call.event]
        # What the release before wrote may lack a fact: it leads to the page above then.
        path = entry.path.format_map(defaultdict(str, call.facts)).rstrip("/")
        link = self._settings.base_url + path if path else ""
        for one in await self._addressees(call, entry.role):
            facts = dict(call.facts)
            if one.organization_name is not None:
                facts["organization"] = one.organization_name
            async with self._database.transaction() as tx:
                await self.write(
                    tx,
                    call.event,
                    one.email,
                    about=call.about,
                    facts=facts,
                    link=link,
                    organization_id=call.organization_id,
                )

    async def ask_for_reset(self, email: str) -> None:
        """Have a link that chooses a new password written: the same work whoever has the address."""
        key = f"reset:{fingerprint(email).hex()}"
        async with self._database.transaction() as tx:
            await self._perform(tx, Perform(MailReset(email=email), key=key), job("mail"))

    async def mail_reset(self, call: MailReset) -> None:
        """Write a link that chooses a new password, unless no one has the address or it has one."""
        async with self._database.transaction() as tx:
            token = await resets.begin(tx, call.email, self._clock())
            if token is not None:
                await self.write(
                    tx,
                    MailEvent.PASSWORD_FORGOTTEN,
                    call.email,
                    about=fingerprint(token).hex(),
                    facts={},
                    link=f"{self._settings.base_url}/password/reset?token={token}",
                )

    async def _addressees(self, call: TellPeople, role: Role) -> list[Addressee]:
        if role is Role.PAYEE:
            return await mails.payee(self._database, call.facts["account"])
        organization_id = call.organization_id
        if role is Role.OPERATORS:
            configured = self._settings.admin_organization_id
            organization_id = await administrators.organization_id(self._database, configured)
        if organization_id is None:
            return []
        return await mails.those_in(self._database, organization_id, ("owner", "admin"))

    async def send(self, call: SendMail) -> None:
        """Hand a mail to the server, and note what it said."""
        mail = await mails.find(self._database, call.mail_id)
        if mail is None or mail.state != "waiting":
            return
        if self._server is None:
            await mails.keep(self._database, mail.id, self._clock())
            if not self._settings.is_local:
                log.error("mail.kept", mail_id=mail.id, event_name=mail.event, variable="MAIL_URL")
            return
        bounced = await mails.mark_of(self._database, mail.recipient)
        # An address that bounced is written to no more (rules/service#provider-events).
        if bounced is not None and bounced.kind is BounceKind.BOUNCED:
            await self._end(mail, "refused", f"The address bounced: {bounced.why}")
            return
        content = self.content(mail)
        if content is None:
            await self._end(mail, "given_up", "its seal cannot be opened")
            return
        host = urlsplit(self._settings.base_url).hostname
        try:
            answer = await self._server.send(
                Mail(
                    message_id=f"<{mail.id}@{host}>",
                    recipient=mail.recipient,
                    subject=mail.subject,
                    text=content.text,
                    html=content.html,
                    unsubscribe=content.unsubscribe,
                    at=mail.created_at,
                )
            )
        except MailRefused as refused:
            await self._end(mail, "refused", str(refused))
            return
        except MailDelayed as delayed:
            tries = mail.attempts + 1
            wait = SendMail.patience.wait_after(tries, delayed)
            if wait is None:
                await self._end(mail, "given_up", str(delayed))
                return
            until = self._clock() + timedelta(seconds=wait)
            await mails.postpone(self._database, mail.id, answer=str(delayed), until=until)
            raise
        await self._end(mail, "sent", answer)

    async def _end(self, mail: OutboundMail, state: str, answer: str) -> None:
        await mails.end(self._database, mail.id, state=state, answer=answer, at=self._clock())
        if state == "sent":
            log.info("mail.sent", mail_id=mail.id, event_name=mail.event)
        else:
            log.error(f"mail.{state}", mail_id=mail.id, event_name=mail.event, answer=answer)  # noqa: G004

    def content(self, mail: OutboundMail) -> Content | None:
        """Read what a mail says; None once it is over, or when its key is gone."""
        if mail.sealed_content is None:
            return None
        try:
            return Content(**json.loads(self._vault.open(mail.sealed_content, **_place(mail.id))))
        except SealBroken:
            return None

    def unsubscribe_address(self, recipient: str, topic: MailTopic) -> str:
        """Give the address that ends mails of a topic to a person, and tells no one who that is."""
        token = self._vault.seal(f"{topic}{SEPARATOR}{recipient}", **UNSUBSCRIBED)
        return f"{self._settings.base_url}{UNSUBSCRIBE}/{token}"

    def unsubscribed(self, token: str) -> tuple[MailTopic, str] | None:
        """Read who wants no more of what from such an address; None for one that is not ours."""
        try:
            topic, _, recipient = self._vault.open(token, **UNSUBSCRIBED).partition(SEPARATOR)
            return MailTopic(topic), recipient
        except (SealBroken, ValueError):
            return None


UNSUBSCRIBED: Final = {"table": "mail_refusals", "column": "recipient", "row": "", "tenant": ""}


def _place(mail_id: str) -> dict[str, str]:
    return {
        "table": "outbound_mail",
        "column": "sealed_content",
        "row": mail_id,
        "tenant": mail_id,
    }
