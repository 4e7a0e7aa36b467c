"""The S3 anchor against a real S3 API: ministack, a program of its own environment."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.objects import ObjectAnchor
from router.audit.anchors.s3 import S3Client, S3Objects
from router.audit.anchors.witness import AnchorRefused
from router.audit.note import Signer
from tests.ministack import ministack

SIGNER = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))


@pytest.fixture(scope="module")
def s3(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]
) -> Iterator[S3Client]:
    with ministack(tmp_path_factory.mktemp("ministack"), free_port()) as server:
        yield server.client("eu-west-1")


def bucket(s3: S3Client, name: str, *, locked: bool) -> ObjectAnchor:
    s3.create_bucket(  # type: ignore[attr-defined]
        Bucket=name,
        ObjectLockEnabledForBucket=locked,
        CreateBucketConfiguration={"LocationConstraint": "eu-west-1"},
    )
    return ObjectAnchor(S3Objects(s3, name), "heads/", timedelta(days=30), time.time)


def test_checkpoints_are_created_once_and_can_not_be_deleted(s3: S3Client) -> None:
    anchor = bucket(s3, "acme-anchor", locked=True)
    heads = [SIGNER.checkpoint(size, bytes([size]) * 32) for size in (9, 100)]
    for head in [*heads, heads[0]]:
        anchor.publish(head)
    assert list(anchor.checkpoints("eu-1")) == heads
    with pytest.raises(AnchorRefused, match="split view"):
        anchor.publish(SIGNER.checkpoint(9, b"\xff" * 32))
    versions = s3.list_object_versions(Bucket="acme-anchor")["Versions"]
    assert isinstance(versions, list)
    assert len(versions) == 2
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.delete_object(  # type: ignore[attr-defined]
            Bucket="acme-anchor", Key=versions[0]["Key"], VersionId=versions[0]["VersionId"],
            BypassGovernanceRetention=True,
        )  # fmt: skip


def test_a_version_put_over_an_anchor_does_not_hide_it(s3: S3Client) -> None:
    anchor = bucket(s3, "acme-second", locked=True)
    head = SIGNER.checkpoint(9, bytes(32))
    anchor.publish(head)
    s3.put_object(Bucket="acme-second", Key=f"heads/eu-1/{9:020d}", Body=b"something else")
    assert list(anchor.checkpoints("eu-1")) == [head]


def test_a_bucket_without_object_lock_is_no_anchor(s3: S3Client) -> None:
    with pytest.raises(AnchorRefused):
        bucket(s3, "acme-plain", locked=False).publish(SIGNER.checkpoint(9, bytes(32)))


def test_a_governance_lock_is_no_anchor(s3: S3Client) -> None:
    anchor = bucket(s3, "acme-soft", locked=True)

    class Soft(S3Objects):
        def create(self, key: str, data: bytes, until: datetime) -> bool:
            s3.put_object(
                Bucket="acme-soft", Key=key, Body=data, ObjectLockMode="GOVERNANCE",
                ObjectLockRetainUntilDate=datetime.now(UTC) + timedelta(days=60),
            )  # fmt: skip
            return True

    soft = ObjectAnchor(Soft(s3, "acme-soft"), "heads/", timedelta(days=30), time.time)
    with pytest.raises(AnchorRefused, match="GOVERNANCE"):
        soft.publish(SIGNER.checkpoint(9, bytes(32)))
    assert list(anchor.checkpoints("us-1")) == []
