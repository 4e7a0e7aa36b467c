"""What the simulated Bedrock offers where: models, inference profiles, guardrails.

Data only, given by the caller. `resolve` answers as the service does: by identifier and SOURCE
region, with AWS's own words when the two do not go together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ARN = re.compile(
    r"arn:(?P<partition>aws[\w-]*):bedrock:(?P<region>[\w-]*):(?P<account>\d*):"
    r"(?P<kind>[\w-]+)/(?P<id>.+)"
)


class BedrockError(Exception):
    """An AWS error: type, HTTP status and message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.status = kind, STATUSES.get(kind, 400)


STATUSES: Mapping[str, int] = {
    "AccessDeniedException": 403, "InternalServerException": 500, "ModelErrorException": 424,
    "ModelNotReadyException": 429, "ModelTimeoutException": 408, "ThrottlingException": 429,
    "ResourceNotFoundException": 404, "ServiceQuotaExceededException": 400,
    "ServiceUnavailableException": 503, "ValidationException": 400,
    "UnknownOperationException": 404, "InvalidSignatureException": 403,
    "UnrecognizedClientException": 403, "MissingAuthenticationTokenException": 403,
    "IncompleteSignatureException": 400,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """An inference profile as one source region sees it.

    `destinations` are region ids. `anywhere` marks a global profile: its answer also holds the
    region-less model ARN. `arn` is set for application profiles and prompt routers only.
    """

    id: str
    source: str
    model: str
    destinations: tuple[str, ...]
    anywhere: bool = False
    arn: str = ""

    @property
    def kind(self) -> str:
        """SYSTEM_DEFINED or APPLICATION."""
        return "APPLICATION" if self.arn else "SYSTEM_DEFINED"


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A guardrail of one region; `profile` is its cross-region guardrail profile, if any."""

    id: str
    region: str
    version: str = "1"
    blocked: tuple[str, ...] = ()
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What an identifier means at a source region: the model and where it may run."""

    model: str
    profile: str
    destinations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BedrockWorld:
    """Everything the stub offers. `in_region` maps a region to the models it serves on demand."""

    in_region: Mapping[str, frozenset[str]] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    guardrails: tuple[Guardrail, ...] = ()
    account: str = "123456789012"

    @staticmethod
    def of(
        routes: Mapping[str, Mapping[str, Sequence[str]]],
        in_region: Mapping[str, Sequence[str]] | None = None,
        *,
        more: Sequence[Profile] = (),
        guardrails: Sequence[Guardrail] = (),
    ) -> BedrockWorld:
        """A world from `{profile id: {source region: destinations}}` and `{region: models}`.

        The model of a system profile is its id without the geography prefix.
        """
        profiles = [
            Profile(name, source, name.partition(".")[2], tuple(found), name.startswith("global."))
            for name, sources in routes.items()
            for source, found in sources.items()
        ]
        models = {region: frozenset(found) for region, found in (in_region or {}).items()}
        return BedrockWorld(models, (*profiles, *more), tuple(guardrails))

    def resolve(self, identifier: str, source: str) -> Target:
        """The target of a model id, profile id or ARN at a source region, or `BedrockError`."""
        name = identifier
        if (arn := _ARN.fullmatch(identifier)) is not None:
            if arn["region"] != source or arn["partition"] != partition(source):
                raise _invalid()
            own = arn["kind"] not in {"foundation-model", "inference-profile"}
            name = identifier if own else arn["id"]
        found = self.profile(name, source)
        if found is not None:
            return Target(found.model, found.arn or found.id, found.destinations)
        if name in self.in_region.get(source, frozenset()):
            return Target(name, "", (source,))
        if any(profile.model == name and profile.source == source for profile in self.profiles):
            raise BedrockError(
                "ValidationException",
                f"Invocation of model ID {name} with on-demand throughput isn’t supported. Retry "
                "your request with the ID or ARN of an inference profile that contains this model.",
            )
        raise _invalid()

    def profile(self, name: str, source: str) -> Profile | None:
        """The profile of an id or (own) ARN at a source region."""
        for profile in self.profiles:
            if name and name in {profile.id, profile.arn} and profile.source == source:
                return profile
        return None

    def guardrail(self, identifier: str, version: str, region: str) -> Guardrail:
        """A guardrail by id or ARN, or `BedrockError`."""
        name = identifier.rpartition("/")[2]
        for guardrail in self.guardrails:
            if (guardrail.id, guardrail.region) == (name, region):
                if version in {guardrail.version, "DRAFT"}:
                    return guardrail
                break
        raise BedrockError(
            "ValidationException",
            "The guardrail identifier or version provided in the request does not exist.",
        )

    def profile_arn(self, profile: Profile) -> str:
        """Its ARN in its source region."""
        start = f"arn:{partition(profile.source)}:bedrock:{profile.source}:{self.account}"
        return profile.arn or f"{start}:inference-profile/{profile.id}"


def model_arns(profile: Profile) -> list[str]:
    """The model ARNs GetInferenceProfile lists: one a destination, or region-less for global."""
    regions = ("", profile.source) if profile.anywhere else profile.destinations
    prefix = f"arn:{partition(profile.source)}:bedrock"
    return [f"{prefix}:{region}::foundation-model/{profile.model}" for region in regions]


def partition(region: str) -> str:
    """The AWS partition of a region id."""
    for prefix, name in (("us-gov-", "aws-us-gov"), ("cn-", "aws-cn"), ("eusc-", "aws-eusc")):
        if region.startswith(prefix):
            return name
    return "aws"


def _invalid() -> BedrockError:
    return BedrockError("ValidationException", "The provided model identifier is invalid.")
