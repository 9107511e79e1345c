"""Every setting of the service: docs/operate/settings.md is made of it, and rules/service#settings stands above it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableSource

from tolsey.setting_types import (
    LOOPBACK,
    PRICE_SETTINGS,
    ActorKinds,
    BucketAddress,
    Keyring,
    MailSender,
    MailServerAddress,
    Network,
    Networks,
    Origin,
    PriceIds,
    Secret,
    ShopAddress,
    Subdomains,
    WebAddress,
    at_least,
    is_loopback,
    scheme,
)

CRON_SECRET_CHARACTERS = 32
METRICS_TOKEN_CHARACTERS = 16
CDN_ORIGIN = "cdn_origin_"


class SettingsError(Exception):
    """A setting cannot be read; the text is one line that names it and repeats no secret."""


class CdnOrigins(PydanticBaseSettingsSource):
    """Gathers `CDN_ORIGIN_<LABEL>` of the environment and the file into one mapping by label."""

    def __init__(self, settings: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._variables: dict[str, str] = {}
        for source in sources:
            if isinstance(source, EnvSettingsSource):
                self._variables |= {
                    name.lower(): value for name, value in source.env_vars.items() if value
                }

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - the base's signature
        """Answer nothing for a single field: this source only answers as a whole."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """List the origins."""
        origins = {
            name.removeprefix(CDN_ORIGIN): value
            for name, value in self._variables.items()
            if name.startswith(CDN_ORIGIN)
        }
        return {"cdn_origins": origins} if origins else {}


class Settings(BaseSettings):
    """What the service was told; every field is the variable of the same name in capitals."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    base_url: Origin = "http://127.0.0.1:8000"
    """The main address, as visitors type it: cookies, links in mails and the badge carry it; unset:
    where `tolsey serve` listens."""
    database_url: Annotated[Secret, scheme("postgresql", "postgres")] | None = None
    """A PostgreSQL with pgvector; unset: an embedded one, kept under `DATA_DIR`."""
    redis_url: Annotated[Secret, scheme("redis", "rediss", "unix")] | None = None
    """A Redis or Valkey; unset: an embedded one, kept under `DATA_DIR`."""
    data_dir: Path = Path(".data")
    """Where embedded servers and made keys are kept. Back it up with its keys."""
    wire_form: Literal["1", "2"] = "1"
    """How processes write to each other: 2 only once every process runs a release that has this setting."""
    lease_seconds: Annotated[float, Field(ge=0.5, le=60)] = 5.0
    """For so long, and no longer, nobody answers for the stores of a process that died without a word."""
    encryption_keys: Keyring | None = None
    """`keyId:base64url of 32 bytes`, with commas; the first encrypts, all decrypt. Unset: made once under `DATA_DIR`, refused in public."""

    cron_secret: Annotated[Secret, at_least(CRON_SECRET_CHARACTERS)] | None = None
    """Opens `/api/cron/<job>`, 32 characters or more; unset: these routes answer 503. Jobs run by themselves all the same."""
    metrics_token: Annotated[Secret, at_least(METRICS_TOKEN_CHARACTERS)] | None = None
    """The only key to `/metrics` once it is set, 16 characters or more; unset: 503 in public."""
    otel_exporter_otlp_endpoint: WebAddress | None = None
    """An OpenTelemetry collector that takes traces as OTLP over HTTP; unset: there are none, and they cost nothing."""
    history_kinds: ActorKinds = frozenset()
    """Kinds of actor (`store`, `organization`, `listing`, `storefront`, `job`) whose turns keep for a week what they changed, so that a state of before can be shown."""
    trusted_proxies: Networks = ()
    """Addresses or networks whose `x-forwarded-for` counts; unset: no one's in public, loopback's on loopback."""
    cleartext_http2: bool = False
    """HTTP/2 without TLS, too: only behind a proxy that speaks it itself."""
    next_public_live_subdomains: Subdomains = frozenset()
    """Sub-addresses that are live, of `mcp`, `api`, `cdn`, `hooks`, `status`, `docs` and `preview`, each before the main address's host."""
    cdn_origins: Mapping[str, WebAddress] = Field(default_factory=dict)
    """`CDN_ORIGIN_<LABEL>`: the public object storage of a label, which `cdn.<host>/<label>/<path>` answers with."""
    admin_organization_id: str | None = None
    """Whose members are administrators; unset: the organization that `tolsey admin create` made."""
    operator_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    """Who is alerted."""
    listing_review: Literal["automatic", "manual"] = "automatic"
    """`automatic`: sellers publish their listings themselves; `manual`: an administrator approves each."""

    launch_theme_url: WebAddress | None = None
    """The ZIP of the theme that launches prepare, which the platform fetches; unset: that milestone is blocked, the rest goes on."""
    commerce_client_id: str | None = None
    """The app of the commerce platform that stores are connected through by default; merchants' own apps need none."""
    commerce_client_secret: Secret | None = None
    """That app's secret, which signs its deliveries."""
    commerce_api_version: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}|unstable)?$")] = ""
    """The platform's version of the Admin API; unset: the one this release was tried with."""
    commerce_url_template: ShopAddress = "https://{shop}"
    """Where a shop's Admin API is reached; `{shop}` is its domain."""

    payments_secret_key: Secret | None = None
    """The processor's key; unset: whatever takes or returns money answers 503."""
    payments_webhook_secret: Secret | None = None
    """What signs the processor's events. Several with commas: the platform's, that of connected accounts, one being rolled."""
    payments_api_base: WebAddress | None = None
    """The processor's address, when it is not the real one."""
    payments_price_pro_monthly: PriceIds = ()
    """Stripe price ids of Pro by the month, separated by commas. The first is sold; all are recognised, so keep an old id here for as long as a subscription has it."""
    payments_price_pro_yearly: PriceIds = ()
    """Price ids of Pro by the year, likewise."""
    payments_price_max5_monthly: PriceIds = ()
    """Price ids of Max 5x by the month, likewise."""
    payments_price_max5_yearly: PriceIds = ()
    """Price ids of Max 5x by the year, likewise."""
    payments_price_max20_monthly: PriceIds = ()
    """Price ids of Max 20x by the month, likewise."""
    payments_price_max20_yearly: PriceIds = ()
    """Price ids of Max 20x by the year, likewise."""
    sponsor_price_cents: Annotated[int, Field(gt=0)] = 50_000
    """What sponsoring costs, in cents."""

    queue_url: WebAddress | None = None
    """The queue service."""
    queue_token: Secret | None = None
    """What opens the queue service."""
    queue_signing_key: Secret | None = None
    """What signs the queue service's calls to us."""
    vector_url: WebAddress | None = None
    """An outside vector store, counted and purged with its store; unset: pgvector, which the chat reads."""
    vector_token: Secret | None = None
    """What opens the outside vector store."""
    llm_base_url: WebAddress | None = None
    """An OpenAI-compatible service for the chat; unset: the chat answers 503."""
    llm_api_key: Secret | None = None
    """What opens it."""
    llm_model: str | None = None
    """The model that it is asked for."""
    llm_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of the field that bounds an answer."""
    llm_tools: bool = True
    """Whether the model can use tools: those that agents have. Off for one that refuses requests with `tools`."""
    llm_context_tokens: Annotated[int, Field(gt=0)] = 128_000
    """How much the model takes."""
    llm_output_tokens: Annotated[int, Field(gt=0)] = 8_192
    """How much it may answer."""
    llm_input_micro_per_million: Annotated[int, Field(ge=0)] = 3_000_000
    """What a million tokens of a question cost, in micro-USD."""
    llm_output_micro_per_million: Annotated[int, Field(ge=0)] = 15_000_000
    """What a million tokens of an answer cost, in micro-USD."""
    llm_reasoning_micro_per_million: Annotated[int, Field(ge=0)] | None = None
    """What a million tokens of reasoning cost, in micro-USD; unset: as an answer."""
    llm_margin_percent: Annotated[int, Field(ge=0, le=1_000)] = 0
    """What is added to the model's price, in percent."""
    embedding_model: str | None = None
    """A model of the same service that makes embeddings; unset: memory is found by its words alone."""
    embedding_micro_per_million: Annotated[int, Field(ge=0)] = 130_000
    """What a million tokens of embeddings cost, in micro-USD."""
    chat_lease_seconds: Annotated[float, Field(ge=1, le=3_600)] = 900.0
    """How long an answer's credits are held when its process dies."""
    chat_checkpoint_seconds: Annotated[float, Field(ge=0.05, le=300)] = 5.0
    """How often a running answer's cost is written down."""
    mail_url: MailServerAddress | None = None
    """`smtp://user:password@host:587` (STARTTLS) or `smtps://…:465`. Unset: mails are kept and sent to no one; in public invitations and new passwords answer 503."""
    mail_from: MailSender | None = None
    """Who mails come from: `Shop keepers <no-reply@example.com>`; goes with `MAIL_URL`."""
    mail_webhook_secret: Secret | None = None
    """What signs the mail provider's events (`whsec_…`, Standard Webhooks), by which addresses that bounce are written to no more. Several with commas while one is rolled, as for the two below."""
    code_host_webhook_secret: Secret | None = None
    """What signs the code host's events (`X-Hub-Signature-256`)."""
    messaging_webhook_secret: Secret | None = None
    """What signs the messaging service's events (`X-Slack-Signature`)."""
    esign_webhook_secret: Secret | None = None
    """What signs the e-signature provider's events (Standard Webhooks); with the two below unset, its events answer 503."""
    esign_api_url: WebAddress | None = None
    """Where its envelopes are fetched again before an event counts."""
    esign_api_key: Secret | None = None
    """What opens that."""
    escrow_api_url: WebAddress | None = None
    """Where the escrow provider's transactions are fetched, since its events are not signed; with the two below unset, they answer 503."""
    escrow_api_login: str | None = None
    """The login that its API takes."""
    escrow_api_key: Secret | None = None
    """And the key."""
    objects_url: BucketAddress | None = None
    """Where files are: `s3://bucket/prefix`, reached by the provider's `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` in the environment. Unset: a folder under `DATA_DIR`, which processes on several machines do not share."""
    storefront_url: WebAddress | None = None
    """Where storefronts are reached instead of at their own addresses, each by its Host: for the sandbox."""
    dns_url: Annotated[str, scheme("dns")] | None = None
    """Which resolver is asked for the records with which owners prove domains, such as `dns://127.0.0.1:53`. Unset: the machine's own."""
    scan_pace_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0
    """How long a scan waits between two requests to a storefront, at least."""
    dataset_url: WebAddress = "https://api.apify.com"
    """Where the external data set is served."""
    dataset_token: Secret | None = None
    """What opens the external data set."""
    dataset_id: str | None = None
    """The external data set."""
    traffic_url: WebAddress = "https://api.similarweb.com"
    """Where visits of storefronts are asked for."""
    traffic_api_key: Secret | None = None
    """The key of Similarweb's API, which tells visits."""
    social_url: WebAddress = "https://www.googleapis.com"
    """Where followers of storefronts' profiles are asked for."""
    social_api_key: Secret | None = None
    """The key of the YouTube Data API, which tells followers."""
    ads_url: WebAddress = "https://graph.facebook.com"
    """Where advertisements of storefronts are asked for."""
    ads_api_key: Secret | None = None
    """An access token of Meta's library of advertisements, which tells those shown now."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show nothing secret, whoever prints this: repr, str, and the tracebacks of rich."""
        return [("base_url", self.base_url)]

    def listening_at(self, address: str) -> "Settings":
        """Take where this listens for the main address, unless that was set."""
        if "base_url" in self.model_fields_set:
            return self
        return self.model_copy(update={"base_url": address})

    @property
    def is_https(self) -> bool:
        """Whether the main address is encrypted; cookies and HSTS follow it."""
        return self.base_url.startswith("https://")

    @property
    def is_local(self) -> bool:
        """Whether the main address is this machine only."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def believed_proxies(self) -> tuple[Network, ...]:
        """Whose `x-forwarded-for` counts: the proxies that were named."""
        # In public nobody's word counts until TRUSTED_PROXIES names them; at home this machine's does.
        return self.trusted_proxies or (LOOPBACK if self.is_local else ())

    @property
    def unset_model(self) -> str | None:
        """The variable for want of which there is no language model; None where one is set."""
        if not self.llm_base_url:
            return "LLM_BASE_URL"
        return None if self.llm_model else "LLM_MODEL"

    @property
    def provider_keys(self) -> Mapping[str, bool]:
        """Whether the key of each provider of intelligence is set, by its variable."""
        keys = ("traffic_api_key", "social_api_key", "ads_api_key")
        return {name.upper(): getattr(self, name) is not None for name in keys}

    @property
    def payment_prices(self) -> Mapping[str, tuple[str, ...]]:
        """Return every price id that is recognised, by the variable that names it."""
        return {name.upper(): ids for name, ids in self if name.startswith(PRICE_SETTINGS)}

    @property
    def sold_prices(self) -> dict[str, str]:
        """Return the price id that a checkout or a change sells, by the variable that names it."""
        return {name: ids[0] for name, ids in self.payment_prices.items() if ids}

    @model_validator(mode="after")
    def _keys_are_given_in_public(self) -> Self:
        if self.encryption_keys is None and not self.is_local:
            raise UnsetInPublic
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment first, then the file."""
        origins = CdnOrigins(settings_cls, dotenv_settings, env_settings)
        return init_settings, env_settings, dotenv_settings, file_secret_settings, origins


class UnsetInPublic(ValueError):  # noqa: N818 - only ever a reason inside a SettingsError
    """Keys made on the fly would be lost with the disk, so a public service must be given them."""

    def __init__(self) -> None:
        super().__init__("must be set when BASE_URL is not a loopback address")


def read(**given: Any) -> Settings:
    """Read the settings, or raise a SettingsError of one line that names the variable."""
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        names = [str(part) for part in first["loc"]]
        if names[:1] == ["cdn_origins"] and len(names) > 1:
            names = [CDN_ORIGIN + names[1]]
        variable = names[0].upper() if names else "ENCRYPTION_KEYS"
        reason = first["msg"].removeprefix("Value error, ").splitlines()[0]
        raise SettingsError(f"{variable}: {reason}") from None
    except UnreadableSource as error:
        raise SettingsError(f".env: {str(error).splitlines()[0]}") from None
