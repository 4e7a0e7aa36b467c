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

    def get_bucket_location(self, **request: object) -> Mapping[str, object]:
        """Where the bucket is."""

    def list_object_versions(self, **request: object) -> Mapping[str, object]:
        """Versions, newest first."""


class S3Objects:
    """See ObjectStore."""

    def __init__(self, client: S3Client, bucket: str, mode: str = "COMPLIANCE") -> None:
        self._client = client
        self._bucket = bucket
        self._mode = mode

    def region(self) -> str:
        """The code of the region that S3 says the bucket is in. Raises AnchorRefused."""
        with self._asking(""):
            found = self._client.get_bucket_location(Bucket=self._bucket)
        code = str(found.get("LocationConstraint") or "us-east-1")
        return "eu-west-1" if code == "EU" else code

    def create(self, key: str, data: bytes, until: datetime) -> bool:
        """See ObjectStore."""
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=data,
                IfNoneMatch="*",
                ChecksumAlgorithm="SHA256",
                ObjectLockMode=self._mode,
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
            answer = self._client.get_object(Bucket=self._bucket, Key=key, **self._oldest(key))
            return _body(answer).read()

    def lock(self, key: str) -> Lock:
        """See ObjectStore. Of the oldest version."""
        try:
            chosen = self._oldest(key)
            answer = self._client.get_object_retention(Bucket=self._bucket, Key=key, **chosen)
        except ClientError as error:
            if _code(error) in _UNLOCKED:
                return Lock("", datetime.fromtimestamp(0, UTC))
            raise self._refused(key, error) from error
        retention = answer["Retention"]
        if not isinstance(retention, Mapping):
            raise AnchorRefused(f"`{key}`: the retention can't be read")
        return Lock(str(retention["Mode"]), retention["RetainUntilDate"])

    def keys(self, prefix: str) -> Iterator[str]:
        """See ObjectStore. A delete adds a marker and hides nothing here."""
        more: dict[str, object] = {}
        last = ""
        while True:
            with self._asking(prefix):
                page = self._client.list_object_versions(Bucket=self._bucket, Prefix=prefix, **more)
            for row in _rows(page, "Versions"):
                if row["Key"] != last:
                    last = str(row["Key"])
                    yield last
            if not page.get("IsTruncated"):
                return
            more = {
                "KeyMarker": page["NextKeyMarker"],
                "VersionIdMarker": page["NextVersionIdMarker"],
            }

    def _oldest(self, key: str) -> dict[str, object]:
        """What names the first version of an object, when it has versions."""
        found = self._client.list_object_versions(Bucket=self._bucket, Prefix=key)
        versions = [row for row in _rows(found, "Versions") if row["Key"] == key]
        return {"VersionId": versions[-1]["VersionId"]} if versions else {}

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
