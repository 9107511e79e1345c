"""The machines of listings, their proofs, offers, deals and signatures: read at the start, which stops unless they are sound.

`machines.json` is their one source: whoever wants another move changes it there (rules/marketplace#machines).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import orjson

NOTHING: Final = "-"
"""What stands before the first move of a machine."""
BUYER, SELLER, CLOCK, PROVIDER, OPERATOR = "B", "S", "X", "E", "A"


class UnsoundMachine(Exception):  # noqa: N818 - what the machine is
    """A machine has two targets for one move, a state that nobody reaches, or a word that nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineMove:
    """One move: from where to where, by what, and who may make it."""

    source: str
    event: str
    to: str
    actors: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine: its moves by state and event, and the states that nothing leaves."""

    name: str
    moves: Mapping[tuple[str, str], MachineMove]
    final: frozenset[str]

    @property
    def states(self) -> frozenset[str]:
        """Every state that a move leads to."""
        return frozenset(move.to for move in self.moves.values())

    @property
    def events(self) -> frozenset[str]:
        """Everything that can happen."""
        return frozenset(event for _, event in self.moves)

    def move(self, state: str, event: str) -> MachineMove | None:
        """Find the move that an event makes in a state."""
        return self.moves.get((state, event))

    def leaving(self, state: str) -> Iterator[MachineMove]:
        """List the moves that a state has."""
        return (move for (source, _), move in self.moves.items() if source == state)

    def knows(self, actor: str, event: str) -> bool:
        """Whether someone may make an event in any state at all."""
        return any(actor in move.actors for (_, one), move in self.moves.items() if one == event)

    def require(self, states: Iterable[str], events: Iterable[str]) -> None:
        """Stop unless code has a word for each state and event, and no others."""
        for said, words in ((self.states, states), (self.events, events)):
            if differing := said ^ {str(one) for one in words}:
                raise UnsoundMachine(f"{self.name}: code differs in {', '.join(sorted(differing))}")


def read(text: bytes) -> Mapping[str, Machine]:
    """Read machines. Raises UnsoundMachine for one that cannot be run as it is written."""
    written = orjson.loads(text)
    parties = frozenset(written["actors"]) | {"recipient", "proposer", "signer", "requester"}
    return {
        name: _sound(name, one, parties | {"recipient of the parent"})
        for name, one in written.items()
        if isinstance(one, dict) and "transitions" in one
    }


def _sound(name: str, written: Mapping[str, Any], parties: frozenset[str]) -> Machine:
    moves: dict[tuple[str, str], MachineMove] = {}
    for one in written["transitions"]:
        move = MachineMove(
            source=one["from"],
            event=one["event"],
            to=one["to"],
            actors=frozenset(actor.strip() for actor in one["actors"].split(",")),
        )
        if (move.source, move.event) in moves:
            raise UnsoundMachine(f"{name}: {move.source} has two moves for {move.event}")
        if unknown := move.actors - parties:
            raise UnsoundMachine(f"{name}: nobody is {', '.join(sorted(unknown))}")
        moves[move.source, move.event] = move
    machine = Machine(name=name, moves=moves, final=frozenset(written.get("final", ())))
    if lost := (machine.states | {source for source, _ in moves}) - _reached(machine):
        raise UnsoundMachine(f"{name}: nothing leads to {', '.join(sorted(lost))}")
    if machine.final and machine.final != {
        state for state in machine.states if not any(machine.leaving(state))
    }:
        raise UnsoundMachine(f"{name}: its final states are not those that nothing leaves")
    return machine


def _reached(machine: Machine) -> set[str]:
    reached: set[str] = set()
    waiting = [NOTHING]
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += [move.to for move in machine.leaving(state)]
    return reached


MACHINES: Final = read(files(__package__).joinpath("machines.json").read_bytes())
LISTING: Final = MACHINES["listing"]
VERIFICATION: Final = MACHINES["verification"]
OFFER: Final = MACHINES["offer"]
DEAL: Final = MACHINES["deal"]
SIGNATURE: Final = MACHINES["signature"]
