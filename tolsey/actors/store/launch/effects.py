"""The calls of a launch: its place among workflows, the steps of milestones, and looks at the shop."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import orjson
import structlog

from tolsey.actors.edit import Edit
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.workflows.messages import ClaimWorkflow
from tolsey.actors.ports import (
    CommerceEditor,
    CommercePlatform,
    OwnStorefront,
    PlatformDocument,
    PlatformError,
    Shop,
)
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import PaymentRequired, Refusal
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.asking import EditRequest, ShopEditor
from tolsey.actors.store.editing.messages import BeginOperation
from tolsey.actors.store.editing.queueing import AT_ONCE
from tolsey.actors.store.effects import shops
from tolsey.actors.store.launch import probing
from tolsey.actors.store.launch.executors import EXECUTORS
from tolsey.actors.store.launch.executors.work import (
    CountDeliveries,
    CountSales,
    Finished,
    LaunchWork,
    LookAt,
    LookAtAll,
    PutUp,
    Question,
    ReadPages,
    ReadShop,
    StepOutcome,
    WriteShop,
    WriteTexts,
)
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.graph import MilestoneStop, marked
from tolsey.actors.store.launch.keeping import SYSTEM
from tolsey.actors.store.launch.launching import PLAN_LIMIT
from tolsey.actors.store.launch.messages import (
    CLAIM_LIFE,
    ClaimPlace,
    PlaceClaimed,
    PlaceRefused,
    ProbeShop,
    ShopProbed,
    StepFinished,
    StepOf,
    StepStopped,
    StepWantsTexts,
    StepWrites,
    TakeStep,
    ToldFact,
    ToldModule,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT, stop_of_error
from tolsey.actors.store.launch.texts import writing
from tolsey.actors.store.launch.texts.drafting import MISSING_CREDENTIAL, NoModel
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import Call, Message
from tolsey.storage.commerce import launches
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.launches import Launch, MilestoneState
from tolsey.storage.sealing.sealed import SealBroken, Vault

log = structlog.get_logger()

MOST_QUESTIONS = 1_000
"""A step that asks more than that of a shop asks in a circle."""
STAGED = "(the address that stagedUploadsCreate answers)"
"""What a dry run has in the place of an address that nobody was asked for."""


class LaunchPlatform(CommercePlatform, CommerceEditor, Protocol):
    """The platform as a launch uses it: read, changed, and told what a change would send."""


class LaunchCalls:
    """Carries launches out, one step at a time; what changes the shop goes as operations of the store."""

    def __init__(
        self,
        *,
        ask: Ask,
        platform: LaunchPlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        storefronts: OwnStorefront,
        theme_url: str | None = None,
        unset_model: str | None = None,
    ) -> None:
        self._ask = ask
        self._shops = shops(ask, vault, clock)
        self._editor = ShopEditor(ask=ask, editor=platform, vault=vault, clock=clock)
        self._platform = platform
        self._database = database
        self._vault = vault
        self._clock = clock
        self._storefronts = storefronts
        self._theme_url = theme_url
        self._no_model = None if unset_model is None else NoModel(MISSING_CREDENTIAL, unset_model)

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {ClaimPlace: self.claim, TakeStep: self.step, ProbeShop: self.probe}

    async def claim(self, call: ClaimPlace) -> PlaceClaimed | PlaceRefused:
        """Ask the organization for a place; 402 leaves the launch queued."""
        at = self._clock()
        wish = ClaimWorkflow(
            workflow_id=call.launch_id, kind="launch", at=at, lease_until=at + CLAIM_LIFE
        )
        try:
            await self._ask(organization(call.organization_id), wish)
        except PaymentRequired:
            return PlaceRefused(launch_id=call.launch_id, reason=PLAN_LIMIT, at=at)
        return PlaceClaimed(launch_id=call.launch_id, until=wish.lease_until, at=at)

    async def step(self, call: TakeStep) -> Message[None] | None:
        """Have the executor of a milestone say what is to be done; nothing once it is further."""
        launch = await launches.find(self._database, call.store_id)
        if launch is None or not _is_at(launch, call):
            return None
        try:
            work = await self._work(launch, call.of.milestone, self._no_model)
            came = await self._come_to(work, self._asked)
        except (Refusal, PlatformError) as error:
            log.warning("launch.step_stopped", store_id=call.store_id, why=str(error))
            came = stop_of_error(error)
        if isinstance(came, MilestoneStop):
            return StepStopped(of=call.of, stop=came, at=self._clock())
        if isinstance(came, Finished):
            return self._finished(call.of, came)
        if isinstance(came, WriteTexts):
            return StepWantsTexts(of=call.of, brief=came.brief.written(), at=self._clock())
        wishes = [
            self._wish(launch, call.of, edit, n, came.before.get(edits.subject_of(edit)))
            for n, edit in enumerate(came.edits)
        ]
        return StepWrites(of=call.of, writes=tuple(wishes), at=self._clock())

    async def rehearse(
        self, launch: Launch, milestone: str, events_url: str
    ) -> tuple[Sequence[PlatformDocument], StepOutcome]:
        """Say what a milestone would send, without sending it, and what it would come to.

        `events_url` is where the platform would be asked to deliver.
        """
        sent = list[PlatformDocument]()

        async def asked(store_id: str, question: Question) -> Any:
            if isinstance(question, PutUp):
                sent.append(self._platform.told_of_upload(question.upload))
                return STAGED
            if isinstance(question, ReadShop) and question.document.lstrip().startswith("mutation"):
                # An order that is calculated changes nothing.
                sent.append(
                    PlatformDocument(document=question.document, variables=question.variables)
                )
            return await self._asked(store_id, question)

        try:
            # A dry run pays for nothing: what no model wrote yet is shown as the templates tell it.
            work = await self._work(launch, milestone, NoModel("dry_run"))
            came = await self._come_to(work, asked)
        except (Refusal, PlatformError) as error:
            return sent, stop_of_error(error)
        if isinstance(came, WriteShop):
            for edit in came.edits:
                facts = await self._asked(launch.head.store_id, LookAt(edit))
                planned = edits.plan(edit, facts)
                change = getattr(planned, "change", None)
                if change is not None:
                    sent.append(self._platform.told(replace(edit, change=change), "dry-run"))
            sent += [self._platform.told(edit, "dry-run") for edit in came.follows]
        if isinstance(came, Finished) and came.lacks_topics:
            sent += self._platform.told_of_subscriptions(events_url, came.result["missingTopics"])
        return sent, came

    async def _come_to(
        self, work: LaunchWork, asked: Callable[[str, Question], Any]
    ) -> StepOutcome:
        """Drive an executor until it has come to something."""
        milestone = work.milestone
        needed = PLAYBOOK.milestones[milestone].scopes
        lacking = [scope for scope in needed if work.scopes and not covers(work.scopes, scope)]
        # What the shop is known not to have granted is not tried (rules/launch#retries).
        if lacking:
            return MilestoneStop(
                kind="blocked",
                reason="scope_missing",
                detail=f"The merchant's app lacks the scope {lacking[0]}. Add it to the app, then run this again.",
                scope=lacking[0],
            )
        taken = EXECUTORS[milestone](work)
        answer: Any = None
        for _ in range(MOST_QUESTIONS):
            try:
                question = taken.send(answer)
            except StopIteration as end:
                came: StepOutcome = end.value
                return came
            answer = await asked(work.store_id, question)
        raise RuntimeError(f"{milestone} asks in a circle")

    async def _work(self, launch: Launch, milestone: str, no_model: NoModel | None) -> LaunchWork:
        """Gather what an executor is given."""
        store_id = launch.head.store_id
        modules = await launches.modules(self._database, store_id)
        scopes: tuple[str, ...] = ()
        if PLAYBOOK.milestones[milestone].scopes:
            scopes = await self._shops.call(store_id, _scopes)
        one, now = launch.milestones[milestone], self._clock()
        return LaunchWork(
            store_id=store_id,
            launch_id=launch.head.launch_id,
            milestone=milestone,
            began_at=one.started_at or now,
            spec=modules.get("onboardingSpec") or {},
            given_kit=modules.get("givenBrandKit") or {},
            kit=modules.get("brandKit") or {},
            results={
                id: orjson.loads(each.result)
                for id, each in launch.milestones.items()
                if each.result is not None
            },
            written=orjson.loads(one.written),
            scopes=scopes,
            decided=marked(launch),
            tax_lines=launch.head.tax_lines,
            theme_url=self._theme_url,
            run=one.run,
            kept_texts=writing.kept_texts(modules, milestone),
            no_model=no_model,
            waited_seconds=(now - (one.queued_at or now)).total_seconds(),
            storefront_password=self._password(launch),
        )

    def _password(self, launch: Launch) -> str | None:
        """Open the password of the storefront; one that cannot be opened is told anew."""
        sealed = launch.head.storefront_password
        try:
            return sealed and launches.open_password(self._vault, launch.head.store_id, sealed)
        except SealBroken:
            log.warning("launch.password_unreadable", store_id=launch.head.store_id)
            return None

    async def _asked(self, store_id: str, question: Question) -> Any:
        """Ask the shop what an executor wants to know."""
        if isinstance(question, LookAtAll):
            # As many at once as a store may (rules/shops#writing-to-the-platform).
            look = partial(self._platform.look_all, some=question.edits, at_once=AT_ONCE)
            return await self._shops.call(store_id, look)
        if isinstance(question, ReadPages):
            return await self._storefronts.owned(
                question.host, question.paths, password=question.password
            )
        if isinstance(question, CountDeliveries):
            return await launches.deliveries(
                self._database, store_id, topics=list(TOPICS), since=question.since
            )
        if isinstance(question, CountSales):
            return await launches.sold_by_hour(
                self._database, store_id, since=question.since, until=self._clock()
            )

        async def of(shop: Shop) -> Any:
            match question:
                case ReadShop():
                    return await self._platform.graphql(shop, question.document, question.variables)
                case LookAt():
                    return await self._platform.look(shop, question.edit)
                case PutUp():
                    return await self._platform.stage(shop, question.upload)

        return await self._shops.call(store_id, of)

    def _wish(
        self,
        launch: Launch,
        of: StepOf,
        edit: Edit,
        number: int,
        before: Mapping[str, Any] | None,
    ) -> BeginOperation:
        """Write a change down as an operation: the same step of the same attempt asks for the same ones.

        What is planned from `before` is sent without another look at the shop first, but the one right before.
        """
        # An attempt that is given back is made again: under the ids of before nothing would be told of its changes.
        began = launch.milestones[of.milestone].started_at
        named = (
            f"{launch.head.launch_id}\n{of.milestone}\n{of.run}\n{of.attempt}\n{of.step}\n{number}"
            f"\n{began and began.isoformat()}"
        )
        asked = EditRequest(
            store_id=launch.head.store_id,
            operation_id=f"op_{hashlib.sha256(named.encode()).hexdigest()[:32]}",
            user_id=launch.head.begun_by or SYSTEM,
            client_id=LAUNCH_CLIENT,
            tool=of.milestone,
            digest=hashlib.sha256(edit.written().encode()).hexdigest(),
            edit=edit,
        )
        return self._editor.begin_message(asked, before=before)

    def _finished(self, of: StepOf, came: Finished) -> StepFinished:
        return StepFinished(
            of=of,
            result=orjson.dumps(came.result).decode(),
            facts=told_facts(came.facts),
            modules=told_modules(came.modules),
            draft_hash=came.draft_hash,
            lacks_topics=came.lacks_topics,
            at=self._clock(),
        )

    async def probe(self, call: ProbeShop) -> ShopProbed | None:
        """Look once at the shop for all that people do; a shop that cannot be looked at tells nothing."""

        async def looked(shop: Shop) -> tuple[Mapping[str, Any], Sequence[str], int | None]:
            blocks = probing.BLOCKS.items()
            left_out = [
                name for name, scope in blocks if shop.scopes and not covers(shop.scopes, scope)
            ]
            asked = probing.variables(call.launch_id, call.orders_since, left_out)
            seen = await self._platform.graphql(shop, PLAYBOOK.documents["pass3.probe"], asked)
            return seen, left_out, await self._tax_lines(shop, call.variant, seen)

        try:
            seen, left_out, tax_lines = await self._shops.call(call.store_id, looked)
        except (Refusal, PlatformError) as error:
            log.warning("launch.probe_failed", store_id=call.store_id, why=str(error))
            return None
        return ShopProbed(
            launch_id=call.launch_id,
            probe=orjson.dumps(seen).decode(),
            unprobed=tuple(probing.BLOCKS[name] for name in left_out),
            orders_since=call.orders_since,
            was_taxed=call.variant is not None,
            tax_lines=tax_lines,
            at=self._clock(),
        )

    async def _tax_lines(
        self, shop: Shop, variant: str | None, seen: Mapping[str, Any]
    ) -> int | None:
        """Count the taxes that an order at home carries; None where none is wanted, or can be calculated."""
        if variant is None or (shop.scopes and not covers(shop.scopes, "write_draft_orders")):
            return None
        known = {
            "address1": "address1",
            "city": "city",
            "zip": "zip",
            "countryCode": "countryCodeV2",
        }
        address = seen["shop"]["shopAddress"] or {}
        order = {
            "lineItems": [{"variantId": variant, "quantity": 1}],
            "shippingAddress": {
                name: address[theirs] for name, theirs in known.items() if address.get(theirs)
            },
        }
        document = PLAYBOOK.documents["launch.preflight"]
        try:
            asked = await self._platform.graphql(shop, document, {"input": order})
        except PlatformError as error:
            log.warning("launch.tax_not_calculated", why=str(error))
            return None
        calculated = asked["draftOrderCalculate"]["calculatedDraftOrder"]
        return None if calculated is None else len(calculated["taxLines"])


async def _scopes(shop: Shop) -> tuple[str, ...]:
    """Tell what a shop granted."""
    return shop.scopes


def told_facts(facts: Mapping[str, Any]) -> tuple[ToldFact, ...]:
    """Write facts as the memory takes them."""
    return tuple(
        ToldFact(fact_id=new_id("fact"), key=key, value=orjson.dumps(value).decode())
        for key, value in facts.items()
    )


def told_modules(modules: Mapping[str, Any]) -> tuple[ToldModule, ...]:
    """Write modules as the store's context takes them."""
    return tuple(
        ToldModule(name=name, value=orjson.dumps(value).decode()) for name, value in modules.items()
    )


def _is_at(launch: Launch, call: TakeStep) -> bool:
    """Tell whether a launch is still at the step of a call."""
    one = launch.milestones[call.of.milestone]
    is_same = (one.run, one.attempts, one.step) == (call.of.run, call.of.attempt, call.of.step)
    is_this = is_same and launch.head.launch_id == call.launch_id
    return is_this and one.state == MilestoneState.RUNNING and not one.waits_for
