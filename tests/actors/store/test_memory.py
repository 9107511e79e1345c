"""Who may write over what a store remembers, and that nothing which was deleted comes back."""

from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.memory import remembering
from tolsey.actors.store.memory.messages import (
    CorrectMessage,
    EmbedRest,
    ForgetFact,
    ForgetMemory,
    ForgetMessage,
    KeepFact,
    KeepMessage,
    MemoryEmbedded,
)
from tolsey.actors.store.memory.remembering import KnownMessage
from tolsey.actors.store.state import StoreState
from tolsey.storage.records.memory import MemorySource, StoreFact, StoreMessage

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
STORE = StoreState(store_id="store_1", organization_id="org_1")
AGENT, LAUNCH, MERCHANT = MemorySource.AGENT, MemorySource.LAUNCH, MemorySource.MERCHANT


def tell(source: MemorySource, value: str = '"dry"', key: str = "brand.voice") -> KeepFact:
    return KeepFact(
        fact_id="fact_2", key=key, value=value, source=source, user_id="usr_2", at=LATER
    )


def known(source: MemorySource) -> StoreFact:
    return StoreFact(
        id="fact_1",
        organization_id="org_1",
        store_id="store_1",
        name="brand.voice",
        value='"warm"',
        source=source,
        user_id="usr_1",
        created_at=NOON,
        updated_at=NOON,
    )


def said(source: MemorySource) -> StoreMessage:
    return StoreMessage(
        id="msg_1",
        organization_id="org_1",
        store_id="store_1",
        role="user",
        text="We ship on Mondays.",
        source=source,
        user_id="usr_1",
        created_at=NOON,
        updated_at=NOON,
    )


@pytest.mark.parametrize(
    ("told_by", "source", "may"),
    [
        (MERCHANT, AGENT, False),
        (LAUNCH, AGENT, False),
        (AGENT, AGENT, True),
        (MERCHANT, LAUNCH, False),
        (LAUNCH, LAUNCH, True),
        (AGENT, LAUNCH, True),
        (MERCHANT, MERCHANT, True),
        (LAUNCH, MERCHANT, True),
        (AGENT, MERCHANT, True),
    ],
)
def test_an_agent_never_writes_over_what_a_merchant_told(
    told_by: MemorySource, source: MemorySource, may: bool
) -> None:
    facts = {"brand.voice": known(told_by)}
    message = KnownMessage(message=said(told_by), count=1)
    forget = ForgetFact(key="brand.voice", source=source, user_id="usr_2", at=LATER)
    correct = CorrectMessage(
        message_id="msg_1", text="On Tuesdays.", source=source, user_id="usr_2", at=LATER
    )
    gone = ForgetMessage(message_id="msg_1", source=source, user_id="usr_2", at=LATER)
    if may:
        (fact,) = remembering.keep_fact(STORE, tell(source), facts).records
        assert (fact.id, fact.value, fact.source) == ("fact_1", '"dry"', source)
        assert remembering.forget_fact(STORE, forget, facts).state.facts == {}
        (mended,) = remembering.correct_message(STORE, correct, message).records
        assert mended.text == "On Tuesdays."
        assert remembering.forget_message(STORE, gone, message).records[0].text == ""
        return
    for refused in (
        lambda: remembering.keep_fact(STORE, tell(source), facts),
        lambda: remembering.forget_fact(STORE, forget, facts),
        lambda: remembering.correct_message(STORE, correct, message),
        lambda: remembering.forget_message(STORE, gone, message),
    ):
        with pytest.raises(Conflict) as refusal:
            refused()
        assert (refusal.value.code, refusal.value.fields["source"]) == (
            "written_by_merchant",
            told_by,
        )


def test_a_fact_of_the_next_turn_sees_the_one_before_it_is_on_disk() -> None:
    first = remembering.keep_fact(STORE, tell(MERCHANT), {})
    assert first.state.facts is not None
    with pytest.raises(Conflict):
        remembering.keep_fact(first.state, tell(AGENT), first.state.facts)


def test_what_was_deleted_keeps_its_id_and_nothing_else() -> None:
    forget = ForgetFact(key="brand.voice", source=MERCHANT, user_id="usr_2", at=LATER)
    (gone,) = remembering.forget_fact(STORE, forget, {"brand.voice": known(AGENT)}).records
    assert (gone.name, gone.value, gone.user_id, gone.deleted_at) == (
        "fact_1",
        "null",
        None,
        LATER,
    )
    emptied = remembering.forget_all(
        STORE, ForgetMemory(LATER), ({"brand.voice": known(MERCHANT)}, [said(MERCHANT)])
    )
    assert emptied.reply == 2
    assert {one.deleted_at for one in emptied.records} == {LATER}
    assert emptied.state.facts == {}


def test_what_was_said_is_kept_once_and_corrected_only_where_it_is() -> None:
    keep = KeepMessage(
        message_id="msg_1", role="user", text="Again.", source=AGENT, user_id="usr_2", at=LATER
    )
    again = remembering.keep_message(STORE, keep, KnownMessage(message=said(AGENT), count=1))
    assert (again.reply, again.records) == (said(AGENT), ())
    nowhere = KnownMessage(message=None, count=0)
    with pytest.raises(NotFound):
        remembering.forget_message(
            STORE,
            ForgetMessage(message_id="msg_1", source=MERCHANT, user_id="usr_2", at=LATER),
            nowhere,
        )


def test_memory_is_embedded_batch_after_batch_by_one_call_at_a_time() -> None:
    begun = remembering.embed_rest(STORE, EmbedRest(NOON))
    assert begun.reply is True
    (first,) = begun.effects
    assert (
        remembering.embed_rest(begun.state, EmbedRest(LATER - timedelta(minutes=55))).effects == ()
    )
    on = remembering.embedded(begun.state, MemoryEmbedded(left=8, at=LATER))
    (second,) = on.effects
    assert first.key != second.key
    done = remembering.embedded(on.state, MemoryEmbedded(left=0, at=LATER))
    assert (done.state.embedding_since, done.effects) == (None, ())
    lost = remembering.embed_rest(begun.state, EmbedRest(LATER))
    assert lost.reply is True, "a batch that was never heard of is begun anew"


def test_a_store_remembers_so_much_and_no_more() -> None:
    facts = {f"key.{n}": known(AGENT) for n in range(remembering.MOST_FACTS)}
    with pytest.raises(Conflict, match="500 facts"):
        remembering.keep_fact(STORE, tell(MERCHANT), facts)
    keep = KeepMessage(
        message_id="msg_9", role="user", text="More.", source=AGENT, user_id="usr_2", at=LATER
    )
    full = KnownMessage(message=None, count=remembering.MOST_MESSAGES)
    with pytest.raises(Conflict, match="1000 messages"):
        remembering.keep_message(STORE, keep, full)
