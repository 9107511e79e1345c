"""Mail by SMTP (RFC 5321): one connection for each mail, encrypted wherever a password is sent."""

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from email.utils import format_datetime, parseaddr
from typing import Final
from urllib.parse import unquote, urlsplit

import aiosmtplib

from tolsey.actors.ports import Mail, MailDelayed, MailRefused
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.setting_types import is_loopback

TIMEOUT_SECONDS: Final = 30.0
PORTS: Final = {"smtp": 587, "smtps": 465}
ANSWER_CHARACTERS: Final = 500
UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
"""What ends a line somewhere: none of it may stand in a header (RFC 5322, section 2.2)."""


class SmtpServer:
    """A mail server at an `smtp://` or `smtps://` address, written to in the name of `sender`."""

    def __init__(self, url: str, sender: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or PORTS[parts.scheme]
        self._is_tls = parts.scheme == "smtps"
        self._username = unquote(parts.username) if parts.username else None
        self._password = unquote(parts.password) if parts.password else None
        self._name, self._address = parseaddr(sender)
        self._timeout = timeout

    async def send(self, mail: Mail) -> str:
        """Hand a mail over; answer with what the server said. Raises MailRefused or MailDelayed."""
        message = self._written(mail)
        client = aiosmtplib.SMTP(
            hostname=self._host,
            port=self._port,
            use_tls=self._is_tls,
            start_tls=self._start_tls,
            username=self._username,
            password=self._password,
            tls_context=trusted_certificates(),
            timeout=self._timeout,
        )
        try:
            async with client:
                _, said = await client.send_message(
                    message, sender=self._address, recipients=[_ascii_host(mail.recipient)]
                )
        except aiosmtplib.SMTPException as error:
            raise _judged(error) from error
        except (OSError, TimeoutError) as error:
            raise MailDelayed(f"{type(error).__name__}: the mail server is out of reach") from error
        except ValueError as error:
            raise MailRefused("this email address is not valid") from error
        return said[:ANSWER_CHARACTERS]

    @property
    def _start_tls(self) -> bool | None:
        """Whether to insist on encryption: before a password, except to this very machine."""
        if self._is_tls:
            return False
        return True if self._username and not is_loopback(self._host) else None

    def _written(self, mail: Mail) -> EmailMessage:
        message = EmailMessage(policy=POLICY)
        message["From"] = Address(one_line(self._name), addr_spec=self._address)
        message["To"] = _ascii_host(mail.recipient)
        message["Subject"] = one_line(mail.subject)
        message["Date"] = format_datetime(mail.at)
        message["Message-ID"] = mail.message_id
        # RFC 3834, section 5: no answering machine answers this.
        message["Auto-Submitted"] = "auto-generated"
        if mail.unsubscribe is not None:
            message["List-Unsubscribe"] = f"<{mail.unsubscribe}>"
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"  # RFC 8058, section 3.1
        message.set_content(mail.text)
        message.add_alternative(mail.html, subtype="html")
        return message


def one_line(text: str) -> str:
    """Write a text as one line, whatever a person put into it."""
    return " ".join(UNPRINTABLE.sub(" ", text).split())


def _ascii_host(address: str) -> str:
    """Write the host of an address as DNS knows it (RFC 5890); the name before it stays as it is."""
    name, _, host = address.rpartition("@")
    try:
        return f"{name}@{host.encode('idna').decode()}"
    except UnicodeError:
        return address


def _judged(error: aiosmtplib.SMTPException) -> MailRefused | MailDelayed:
    """Tell what the server refuses for good from what may do later (RFC 5321, section 4.2.1)."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        error = error.recipients[0]
    if isinstance(error, aiosmtplib.SMTPNotSupported):
        return MailRefused(_said(error.message))
    if not isinstance(error, aiosmtplib.SMTPResponseException):
        return MailDelayed(_said(f"{type(error).__name__}: {error}"))
    said = _said(f"{error.code} {error.message}")
    # What it says of us, and not of this mail, is for the operator to mend: the mail waits.
    of_us = (
        aiosmtplib.SMTPAuthenticationError,
        aiosmtplib.SMTPConnectResponseError,
        aiosmtplib.SMTPHeloError,
    )
    is_lasting = 500 <= error.code < 600 and not isinstance(error, of_us)  # noqa: PLR2004
    return MailRefused(said) if is_lasting else MailDelayed(said)


def _said(text: str) -> str:
    return one_line(text)[:ANSWER_CHARACTERS]
