"""What reaches outside: one adapter for each port, made from the settings."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from tolsey.actors.ports import DatasetReader, MailServer, ScanQueue, Unset, Vectors
from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.closing import EnvelopeProvider, EscrowProvider
from tolsey.http.clients.commerce.admin import API_VERSION, ShopifyAdmin
from tolsey.http.clients.counted import CountedClient
from tolsey.http.clients.embeddings import EmbeddingModel
from tolsey.http.clients.model import ChatModel, StreamingModel
from tolsey.http.clients.objects import Objects
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.http.clients.payments.revenue import RestrictedAccounts
from tolsey.http.clients.scan_queue import ExternalDataset, PublishedScans
from tolsey.http.clients.smtp import SmtpServer
from tolsey.http.clients.storefront.providers import ProviderAccount, Providers
from tolsey.http.clients.storefront.robots import AGENT
from tolsey.http.clients.storefront.scanner import WebScanner
from tolsey.http.clients.storefront.visit import Manners
from tolsey.http.clients.vectors import RestVectors
from tolsey.settings import Settings
from tolsey.storage.chat.vectors import DatabaseVectors
from tolsey.storage.database import Database


@dataclass(frozen=True, slots=True)
class Adapters:
    """The world outside, as the service reaches it; what has no credential refuses its use."""

    commerce: ShopifyAdmin
    payments: StripePayments
    seller_accounts: RestrictedAccounts
    vectors: Vectors
    model: ChatModel
    embeddings: EmbeddingModel | None
    """None where none is set: memory is found by its words."""
    objects: Objects
    mail: MailServer | None
    """None where none is set: mails are kept."""
    storefronts: WebScanner
    scan_queue: ScanQueue
    dataset: DatasetReader | None
    """None where none is set."""
    envelopes: EnvelopeProvider | None
    """The same."""
    escrow: EscrowProvider | None
    """The same."""


async def adapters(
    stack: AsyncExitStack, settings: Settings, database: Database, clock: Callable[[], datetime]
) -> Adapters:
    """Make them; their connections close with the stack."""
    commerce = ShopifyAdmin(
        settings.commerce_url_template, settings.commerce_api_version or API_VERSION
    )
    stack.push_async_callback(commerce.close)
    payments = StripePayments(
        settings.payments_secret_key, settings.sold_prices, settings.payments_api_base
    )
    stack.push_async_callback(payments.close)
    seller_accounts = RestrictedAccounts(settings.payments_api_base)
    stack.push_async_callback(seller_accounts.close)
    vectors = await _vectors(stack, settings, database)
    callback = f"{settings.base_url}/api/internal/scans"
    scan_queue = PublishedScans(settings.queue_url, settings.queue_token, callback)
    stack.push_async_callback(scan_queue.close)
    return Adapters(
        commerce=commerce,
        payments=payments,
        seller_accounts=seller_accounts,
        vectors=vectors,
        model=_model(stack, settings),
        embeddings=_embeddings(stack, settings),
        objects=Objects.of(settings.objects_url, settings.data_dir),
        mail=_mail(settings),
        scan_queue=scan_queue,
        dataset=_dataset(stack, settings),
        envelopes=_envelopes(stack, settings),
        escrow=_escrow(stack, settings),
        storefronts=WebScanner(
            agent=f"{AGENT}/1.0 (+{settings.base_url}/docs/rules/intelligence)",
            providers=_providers(stack, settings, clock),
            clock=clock,
            manners=Manners(pace_seconds=settings.scan_pace_seconds),
            via=settings.storefront_url,
            dns_url=settings.dns_url,
        ),
    )


def _providers(
    stack: AsyncExitStack, settings: Settings, clock: Callable[[], datetime]
) -> Providers:
    asked = Providers(
        {
            "traffic": ProviderAccount(url=settings.traffic_url, key=settings.traffic_api_key),
            "social": ProviderAccount(url=settings.social_url, key=settings.social_api_key),
            "ads": ProviderAccount(url=settings.ads_url, key=settings.ads_api_key),
        },
        clock,
    )
    stack.push_async_callback(asked.close)
    return asked


def _dataset(stack: AsyncExitStack, settings: Settings) -> DatasetReader | None:
    if settings.dataset_token is None or settings.dataset_id is None:
        return None
    read = ExternalDataset(settings.dataset_url, settings.dataset_id, settings.dataset_token)
    stack.push_async_callback(read.close)
    return read


def _envelopes(stack: AsyncExitStack, settings: Settings) -> EnvelopeProvider | None:
    if settings.esign_api_url is None or settings.esign_api_key is None:
        return None
    asked = EnvelopeProvider(settings.esign_api_url, settings.esign_api_key)
    stack.push_async_callback(asked.close)
    return asked


def _escrow(stack: AsyncExitStack, settings: Settings) -> EscrowProvider | None:
    login, key = settings.escrow_api_login, settings.escrow_api_key
    if settings.escrow_api_url is None or login is None or key is None:
        return None
    asked = EscrowProvider(settings.escrow_api_url, login, key)
    stack.push_async_callback(asked.close)
    return asked


def _mail(settings: Settings) -> MailServer | None:
    if settings.mail_url is None or settings.mail_from is None:
        return None
    return SmtpServer(settings.mail_url, settings.mail_from)


async def _vectors(stack: AsyncExitStack, settings: Settings, database: Database) -> Vectors:
    if settings.vector_url is None:
        return DatabaseVectors(database)
    if settings.vector_token is None:
        return cast("Vectors", Unset("VECTOR_TOKEN"))
    client = await stack.enter_async_context(
        CountedClient("vectors", verify=trusted_certificates())
    )
    return RestVectors(settings.vector_url, settings.vector_token, client)


def _model(stack: AsyncExitStack, settings: Settings) -> ChatModel:
    if settings.llm_base_url is None or settings.llm_model is None:
        return cast("ChatModel", Unset(settings.unset_model or "LLM_MODEL"))
    streaming = StreamingModel(
        settings.llm_base_url,
        settings.llm_model,
        settings.llm_api_key,
        limit_field=settings.llm_limit_field,
    )
    stack.push_async_callback(streaming.close)
    return streaming


def _embeddings(stack: AsyncExitStack, settings: Settings) -> EmbeddingModel | None:
    if not settings.llm_base_url or not settings.embedding_model:
        return None
    model = EmbeddingModel(settings.llm_base_url, settings.embedding_model, settings.llm_api_key)
    stack.push_async_callback(model.close)
    return model
