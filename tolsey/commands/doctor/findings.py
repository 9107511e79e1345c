"""A line of what `tolsey doctor` found."""

from typing import Literal, NamedTuple, TypeAlias

from tolsey.http.operators.measures.footing import OFF_SECONDS

Word: TypeAlias = Literal[
    "set", "default", "unread", "reached", "waiting", "refused", "MISSING", "FAILED"
]


class Finding(NamedTuple):
    """A word, what it is about, and what is so."""

    word: Word
    name: str
    what: str

    @property
    def is_bad(self) -> bool:
        """Whether something that is needed is not there."""
        return self.word.isupper()


def of_clock(whose: str, ahead: float, took: float) -> Finding:
    """Say how far this machine's clock is from a server's, which was asked in so many seconds."""
    if abs(ahead) <= OFF_SECONDS + took:
        return Finding("reached", "clock", f"this machine's is that of {whose}")
    way = "ahead of" if ahead > 0 else "behind"
    what = f"this machine's is {abs(ahead):.0f} seconds {way} that of {whose}"
    return Finding("FAILED", "clock", f"{what}: let a time server set both")
