"""`log` of `domicile.yaml`: what its parts refuse."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from router.settings.config_log import AnchorSection, ExportSection, LogSection, SealSection

SEAL = {"s3": "b", "region": "aws:eu-central-1", "retain": "3y"}


def test_a_local_copy_stays_unless_a_seal_outlives_it() -> None:
    assert SealSection.model_validate(SEAL).local is None
    assert SealSection.model_validate({**SEAL, "local": "30d"}).local == 30 * 86_400
    for wrong in ({"local": "3y"}, {"local": "30d", "mode": "GOVERNANCE"}):
        with pytest.raises(ValidationError, match="outlives"):
            SealSection.model_validate({**SEAL, **wrong})


def test_an_export_has_one_place() -> None:
    assert ExportSection.model_validate({"file": "e.jsonl", "format": "cef"}).name == "e.jsonl"
    http = {"http": "https://otel.example.org/v1/logs", "region": "aws:eu-central-1"}
    assert ExportSection.model_validate({**http, "format": "otel"}).name == "otel.example.org"
    for wrong in ({}, {"file": "e", **http}, {"http": http["http"]}, {"file": "e", "region": "a"}):
        with pytest.raises(ValidationError):
            ExportSection.model_validate({"format": "cef", **wrong})


def test_an_anchor_is_a_bucket_or_a_witness() -> None:
    assert AnchorSection.model_validate({"s3": "a", "region": "aws:eu-west-1"}).keep > 300 * 86_400
    for wrong in ({}, {"s3": "a"}, {"witness": "https://w.example.org"}):
        with pytest.raises(ValidationError):
            AnchorSection.model_validate(wrong)


@pytest.mark.parametrize("key", ["log.key", "kms:alias/log", "env:LOG_KEY"])
def test_the_signing_key_is_named_and_never_told(key: str) -> None:
    assert LogSection.model_validate({"dir": "log", "signing_key": "file:log.key"}).anchor is None
    with pytest.raises(ValidationError, match="only by reference"):
        LogSection.model_validate({"dir": "log", "signing_key": key})
