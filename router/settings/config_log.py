"""`log` of `domicile.yaml`: where the region log goes, who signs it, where it is anchored, sealed
and exported."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from policies.measures import duration
from router.settings.config_types import Duration, LastingKey, Secret, Size, Strict
from router.settings.sink_urls import safe_url


class AnchorSection(Strict):
    """Where published checkpoints go, out of the operator's reach: a bucket, a witness, or both.

    `s3`: a bucket with Object Lock in `region` (`aws:eu-west-1`), best in another account; each
    checkpoint is locked for `keep`. `witness`: the base URL of a C2SP witness, with its `key`
    (vkey). `endpoint`: another S3 API. Without `credentials` AWS's default chain is asked.
    """

    s3: str | None = None
    region: str | None = None
    prefix: str = ""
    keep: Duration = duration("10y")
    endpoint: str | None = None
    credentials: Secret | None = None
    witness: str | None = None
    key: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.s3 is None and self.witness is None:
            raise ValueError("an anchor is `s3` with `region`, or `witness` with `key`")
        if (self.s3 is None) != (self.region is None):
            raise ValueError("`s3` and `region` stand together")
        if (self.witness is None) != (self.key is None):
            raise ValueError("`witness` and `key` stand together")
        return self


class SealSection(Strict):
    """Where finished segments go: a bucket with Object Lock inside what they record.

    A segment ends at `size` or after `every`, whichever is first. GOVERNANCE is not immutable,
    and reported as that. `local`: how long lines stay here; for ever unless it is given.
    """

    s3: str
    region: str
    retain: Duration
    mode: Annotated[str, Field(pattern=r"^(COMPLIANCE|GOVERNANCE)$")] = "COMPLIANCE"
    prefix: str = ""
    endpoint: str | None = None
    credentials: Secret | None = None
    size: Size = 16 << 20
    every: Duration = 3600.0
    local: Duration | None = None

    @model_validator(mode="after")
    def _sealed_while_here(self) -> Self:
        if self.local is not None and (self.mode != "COMPLIANCE" or self.local >= self.retain):
            raise ValueError("`local` needs a seal that outlives it, under `mode: COMPLIANCE`")
        return self


class ExportSection(Strict):
    """Something that gets every event of the log, for other systems to read.

    One of: `file`, on this machine; `http`, a URL that takes batches by POST; `syslog`, as
    `tls://host:6514`, or `tcp://…` on a private network. The last two say in which `region` they
    are. `token`: a bearer token for `http`. `ca`: a PEM file that replaces the system's roots.
    """

    format: Annotated[str, Field(pattern=r"^(ocsf|cef|otel)$")]
    file: str | None = None
    http: str | None = None
    syslog: str | None = None
    region: str | None = None
    token: Secret | None = None
    ca: str | None = None

    @property
    def name(self) -> str:
        """What metrics and status call it: its file, or host and port."""
        url = self.http or self.syslog
        return str(self.file) if url is None else urlsplit(url).netloc

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(one is not None for one in (self.file, self.http, self.syslog)) != 1:
            raise ValueError("an export is one of `file`, `http` and `syslog`")
        if (self.file is None) != (self.region is not None):
            raise ValueError("`http` and `syslog` need the `region` they are in; a file is here")
        if self.token is not None and self.http is None:
            raise ValueError("`token` is for `http`")
        if self.ca is not None and self.file is not None:
            raise ValueError("`ca` is for `http` and `syslog`")
        safe_url(self.http, {"https": False, "http": True})
        safe_url(self.syslog, {"tls": False, "tcp": True})
        return self


class KmsSection(Strict):
    """How KMS is asked. Without `credentials` AWS's default chain is asked; `endpoint`: another
    KMS API."""

    endpoint: str | None = None
    credentials: Secret | None = None


class LogSection(Strict):
    """Where the region log goes, and the lasting key that certifies what signs its tree heads.

    `signing_key`: `kms:ARN`, or `file:PATH`, which is weaker: who can read it can sign for ever.
    `bind_answers`: answers are bound as requests are, for some CPU and 44 bytes of each entry.
    `key_period`: how long one key binds a tenant's contents and users; what is erased goes with it.
    """

    dir: Annotated[str, Field(min_length=1)]
    signing_key: LastingKey
    kms: KmsSection = KmsSection()
    key_period: Duration = 86_400.0
    bind_answers: bool = False
    durability: Annotated[str, Field(pattern=r"^(local|replicated)$")] = "local"
    anchor: AnchorSection | None = None
    seal: SealSection | None = None
    exports: tuple[ExportSection, ...] = ()
