"""Bedrock's control plane: what a region lists and says. Pure but for its retention modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qs, unquote

from router.simulator.bedrock_world import (
    BedrockError,
    BedrockWorld,
    Guardrail,
    Profile,
    model_arns,
    partition,
)
from router.simulator.vllm_api import JsonMap

_EPOCH = "2026-01-01T00:00:00Z"
_MODES = frozenset({"default", "none", "aws_review", "provider_data_share", "inherit"})


class ControlPlane:
    """Answers control operations. `retention` maps a region to its mode (missing: `default`)."""

    def __init__(self, world: BedrockWorld, retention: dict[str, str]) -> None:
        self._world, self._retention = world, retention

    def answer(
        self, method: str, path: str, query: str, document: JsonMap, region: str
    ) -> tuple[str, JsonMap] | None:
        """The operation's name and its answer; None if it is no control operation."""
        options = {name: values[-1] for name, values in parse_qs(query).items()}
        collection, _, name = path.lstrip("/").partition("/")
        name = unquote(name)
        operations: dict[tuple[str, str, bool], tuple[str, Callable[[], JsonMap]]] = {
            ("GET", "inference-profiles", False): (
                "ListInferenceProfiles", lambda: self._profiles(options, region)),
            ("GET", "inference-profiles", True): (
                "GetInferenceProfile", lambda: self._profile(name, region)),
            ("GET", "guardrails", False): (
                "ListGuardrails", lambda: self._guardrails(options, region)),
            ("GET", "guardrails", True): (
                "GetGuardrail", lambda: self._guardrail(name, options, region)),
            ("GET", "foundation-models", False): (
                "ListFoundationModels", lambda: self._models(region)),
            ("GET", "data-retention", False): (
                "GetAccountDataRetention", lambda: self._mode(region)),
            ("PUT", "data-retention", False): (
                "PutAccountDataRetention", lambda: self._set_mode(document, region)),
        }  # fmt: skip
        found = operations.get((method, collection, bool(name)))
        return None if found is None else (found[0], found[1]())

    def _profiles(self, options: Mapping[str, str], region: str) -> JsonMap:
        wanted = options.get("type")
        found = [
            self._summary(profile)
            for profile in self._world.profiles
            if profile.source == region and wanted in {None, profile.kind}
        ]
        return _page("inferenceProfileSummaries", found, options)

    def _profile(self, name: str, region: str) -> JsonMap:
        identifier = name.rpartition("/")[2] if ":inference-profile/" in name else name
        found = self._world.profile(identifier, region)
        if found is None:
            raise BedrockError("ResourceNotFoundException", "The inference profile was not found.")
        return self._summary(found)

    def _summary(self, profile: Profile) -> JsonMap:
        return {
            "inferenceProfileName": profile.id, "description": f"simulated {profile.id}",
            "createdAt": _EPOCH, "updatedAt": _EPOCH, "status": "ACTIVE", "type": profile.kind,
            "inferenceProfileId": profile.id,
            "inferenceProfileArn": self._world.profile_arn(profile),
            "models": [{"modelArn": arn} for arn in model_arns(profile)],
        }  # fmt: skip

    def _guardrails(self, options: Mapping[str, str], region: str) -> JsonMap:
        found: list[JsonMap] = [
            {**self._guardrail_summary(guardrail), "id": guardrail.id,
             "arn": self._guardrail_arn(guardrail)}
            for guardrail in self._world.guardrails
            if guardrail.region == region
        ]  # fmt: skip
        return _page("guardrails", found, options)

    def _guardrail(self, name: str, options: Mapping[str, str], region: str) -> JsonMap:
        version = options.get("guardrailVersion", "DRAFT")
        found = self._world.guardrail(name, version, region)
        return {
            **self._guardrail_summary(found), "guardrailId": found.id,
            "guardrailArn": self._guardrail_arn(found), "blockedInputMessaging": "blocked",
            "blockedOutputsMessaging": "blocked",
        }  # fmt: skip

    def _guardrail_summary(self, guardrail: Guardrail) -> dict[str, object]:
        summary: dict[str, object] = {
            "name": guardrail.id, "status": "READY", "version": guardrail.version,
            "createdAt": _EPOCH, "updatedAt": _EPOCH,
        }  # fmt: skip
        if guardrail.profile:
            arn = f"{self._prefix(guardrail.region)}:guardrail-profile/{guardrail.profile}"
            summary["crossRegionDetails"] = {
                "guardrailProfileId": guardrail.profile, "guardrailProfileArn": arn,
            }  # fmt: skip
        return summary

    def _guardrail_arn(self, guardrail: Guardrail) -> str:
        return f"{self._prefix(guardrail.region)}:guardrail/{guardrail.id}"

    def _prefix(self, region: str) -> str:
        return f"arn:{partition(region)}:bedrock:{region}:{self._world.account}"

    def _models(self, region: str) -> JsonMap:
        start = f"arn:{partition(region)}:bedrock:{region}::foundation-model"
        names = sorted(self._world.in_region.get(region, ()))
        found = [{"modelArn": f"{start}/{name}", "modelId": name} for name in names]
        return {"modelSummaries": found}

    def _mode(self, region: str) -> JsonMap:
        return {"mode": self._retention.get(region, "default"), "updatedAt": _EPOCH}

    def _set_mode(self, document: JsonMap, region: str) -> JsonMap:
        mode = str(document.get("mode"))
        if mode not in _MODES:
            raise BedrockError("ValidationException", f"mode must be one of {sorted(_MODES)}")
        self._retention[region] = mode
        return self._mode(region)


def _page(name: str, found: Sequence[JsonMap], options: Mapping[str, str]) -> JsonMap:
    start, size = int(options.get("nextToken", "0")), int(options.get("maxResults", "100"))
    page: dict[str, object] = {name: list(found[start : start + size])}
    if start + size < len(found):
        page["nextToken"] = str(start + size)
    return page
