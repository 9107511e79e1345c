"""What the runtime answers instead of a reply. Each says whether the message took effect."""

from collections.abc import Sequence


class RuntimeFault(Exception):  # noqa: N818 - the subclasses name the fault
    """The runtime could not answer."""

    outcome = "none"
    """`none`: the message had no effect. `unknown`: ask again with the same id to learn it."""


class Overloaded(RuntimeFault):
    """A bound is reached: the actor's mailbox or the whole process is behind its senders."""

    def __init__(self, scope: str, retry_after: float = 1.0) -> None:
        super().__init__(f"{scope} is full")
        self.scope = scope
        self.retry_after = retry_after


class ShardUnavailable(RuntimeFault):
    """The actor cannot serve now: the process is stopping, not the owner, or cut from its disk."""

    crosses_as = "tolsey.runtime.errors:Unavailable"
    """What releases before this one call it when it crosses between processes."""

    def __init__(self, reason: str, retry_after: float = 1.0, *, outcome: str = "none") -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.outcome = outcome


class NotOwner(ShardUnavailable):
    """Another process owns the actor, or may own it by now; the message had no effect here."""

    def __init__(self, reason: str = "another process owns this actor") -> None:
        super().__init__(reason)


class Stopping(ShardUnavailable):
    """The process is stopping; the one that follows it will serve."""

    def __init__(self) -> None:
        super().__init__("the process is stopping", retry_after=2.0)


class DeadlineExceeded(RuntimeFault):
    """The answer did not come in time; a turn that had begun still ends as one."""

    outcome = "unknown"


class Duplicate(RuntimeFault):
    """The message had already taken effect."""


class TurnFailed(RuntimeFault):
    """A turn ended in a bug or could not be written down; it changed nothing."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(f"{message}: {cause}")
        self.message = message
        self.cause = cause


class Cycle(RuntimeFault):
    """A turn asked an actor of its own rank or below; waiting could never end."""

    def __init__(self, path: Sequence[object]) -> None:
        super().__init__(" -> ".join(str(step) for step in path))
        self.path = tuple(path)
