"""Askers whose reply is resolved by a later turn: each waits under its actor and a name."""

from collections.abc import Callable, Mapping
from typing import Any

from tolsey.runtime.messages import ActorId
from tolsey.runtime.turns.mailbox import Envelope


class Parking:
    """Who waits for which name of which actor."""

    def __init__(self) -> None:
        self._waiting: dict[ActorId, dict[str, list[Envelope]]] = {}

    def __len__(self) -> int:
        """Count who waits."""
        return sum(len(some) for names in self._waiting.values() for some in names.values())

    def __contains__(self, actor: ActorId) -> bool:
        """Whether anybody waits for an actor."""
        return actor in self._waiting

    def park(self, actor: ActorId, name: str, envelope: Envelope) -> None:
        """Let an asker wait for a name to be resolved, or for its own deadline."""
        if not envelope.abandoned:
            self._waiting.setdefault(actor, {}).setdefault(name, []).append(envelope)
            if envelope.future is not None:
                envelope.future.add_done_callback(
                    lambda _: self._leave(actor, name, envelope)  # a deadline, a caller gone
                )

    def resolve(self, actor: ActorId, answers: Mapping[str, Any]) -> None:
        """Answer everyone who waits for these names."""
        names = self._waiting.get(actor)
        if names is None:
            return
        for name, answer in answers.items():
            for envelope in names.pop(name, ()):
                if isinstance(answer, BaseException):
                    envelope.fail(answer)
                else:
                    envelope.answer(answer)
        if not names:
            self._waiting.pop(actor, None)

    def fail(self, actor: ActorId, error: Callable[[], BaseException]) -> None:
        """Fail everyone who waits for an actor."""
        for envelopes in self._waiting.pop(actor, {}).values():
            for envelope in envelopes:
                envelope.fail(error())

    def fail_all(self, error: Callable[[], BaseException]) -> None:
        """Fail everyone who waits."""
        for actor in list(self._waiting):
            self.fail(actor, error)

    def _leave(self, actor: ActorId, name: str, envelope: Envelope) -> None:
        names = self._waiting.get(actor, {})
        if envelope in names.get(name, ()):
            names[name].remove(envelope)
            if not names[name]:
                del names[name]
            if not names:
                del self._waiting[actor]
