"""Writes to people how the service does: to who subscribed, and to the operator."""

from datetime import datetime

from tolsey.actors.job.alerts.thresholds import Alert
from tolsey.http.mail.book import StatusMail
from tolsey.http.mail.office import PostOffice
from tolsey.http.status.webhooks import StatusWebhooks
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.records.status import Incident, IncidentUpdate
from tolsey.storage.status import incidents


class StatusLetters:
    """Writes each once, with the commit of the others of its page."""

    def __init__(
        self, database: Database, settings: Settings, office: PostOffice, webhooks: StatusWebhooks
    ) -> None:
        self._database = database
        self._settings = settings
        self._office = office
        self._webhooks = webhooks

    async def tell_subscribers(self, incident: Incident, update: IncidentUpdate) -> int:
        """Write to who subscribed what was said of an incident; answers to how many."""
        told = 0
        facts = {"title": incident.title, "state": update.state.capitalize(), "said": update.body}
        async for page in incidents.subscribers(self._database, incident.component):
            async with self._database.transaction() as tx:
                for email in page:
                    await self._office.write(
                        tx,
                        StatusMail.STATUS_CHANGED,
                        email,
                        about=update.id,
                        facts=facts,
                        link=f"{self._settings.base_url}/status",
                    )
            told += len(page)
        return told + await self._webhooks.tell_of(incident, update)

    async def tell_operator(self, alert: Alert, at: datetime) -> bool:
        """Write to the operator of an alert; whether there is one."""
        operator = self._settings.operator_email
        if operator is None:
            return False
        async with self._database.transaction() as tx:
            await self._office.write(
                tx,
                StatusMail.ALERT_RAISED,
                operator,
                about=f"{alert.name}:{at.isoformat()}",
                facts={"alert": alert.name, "said": alert.sentence},
                link=f"{self._settings.base_url}/status",
            )
        return True
