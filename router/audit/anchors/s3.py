"""The object store of AWS S3, over an injected boto3 client.

The writer needs `s3:PutObject` and `s3:PutObjectRetention` with a policy that denies
overwriting, plus `s3:GetObject` and `s3:GetObjectRetention` to read back; never
`s3:DeleteObject*` or `s3:BypassGovernanceRetention`. The bucket belongs in another account.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError

from router.audit.anchors.objects import Lock
from router.audit.anchors.witness import AnchorRefused

_THERE = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict"})
_UNLOCKED = frozenset({"NoSuchObjectLockConfiguration", "ObjectLockConfigurationNotFoundError"})


class _Body(Protocol):
    def read(self) -> bytes:
        """All of it."""


class S3Client(Protocol):
    """The calls used, as boto3 has them."""

    def put_object(self, **request: object) -> object:
        """Create an object."""

    def get_object(self, **request: object) -> Mapping[str, object]:
        """Read an object."""

    def get_object_retention(self, **request: object) -> Mapping[str, object]:
        """Read its lock."""

    def list_objects_v2(self, **request: object) -> Mapping[str, object]:
        """One page of keys."""

    def list_object_versions(self, **request: object) -> Mapping[str, object]:
        """Versions, newest first."""


class S3Objects:
    """See ObjectStore."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def create(self, key: str, data: bytes, until: datetime) -> bool:
        """See ObjectStore."""
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=data,
                IfNoneMatch="*",
                ChecksumAlgorithm="SHA256",
                ObjectLockMode="COMPLIANCE",
                ObjectLockRetainUntilDate=until,
            )
        except ClientError as error:
            if _code(error) in _THERE:
                return False
            raise self._refused(key, error) from error
        except BotoCoreError as error:
            raise self._refused(key, error) from error
        return True

    def read(self, key: str) -> bytes:
        """See ObjectStore. The oldest version: a later one can't replace what was locked."""
        with self._asking(key):
            found = self._client.list_object_versions(Bucket=self._bucket, Prefix=key)
            versions = _rows(found, "Versions")
            oldest = next(
                (row["VersionId"] for row in reversed(versions) if row["Key"] == key), None
            )
            chosen = {"VersionId": oldest} if oldest else {}
            answer = self._client.get_object(Bucket=self._bucket, Key=key, **chosen)
            return _body(answer).read()

    def lock(self, key: str) -> Lock:
        """See ObjectStore."""
        try:
            answer = self._client.get_object_retention(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if _code(error) in _UNLOCKED:
                return Lock("", datetime.fromtimestamp(0, UTC))
            raise self._refused(key, error) from error
        retention = answer["Retention"]
        if not isinstance(retention, Mapping):
            raise AnchorRefused(f"`{key}`: the retention can't be read")
        return Lock(str(retention["Mode"]), retention["RetainUntilDate"])

    def keys(self, prefix: str) -> Iterator[str]:
        """See ObjectStore."""
        more: dict[str, object] = {}
        while True:
            with self._asking(prefix):
                page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, **more)
            yield from (str(row["Key"]) for row in _rows(page, "Contents"))
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise self._refused(key, error) from error

    def _refused(self, key: str, error: Exception) -> AnchorRefused:
        return AnchorRefused(f"`s3://{self._bucket}/{key}`: {error}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _rows(page: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    rows = page.get(name, [])
    return rows if isinstance(rows, list) else []


def _body(answer: Mapping[str, object]) -> _Body:
    body: _Body = answer["Body"]  # type: ignore[assignment]
    return body
