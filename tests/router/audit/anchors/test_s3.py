from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from router.audit.anchors.objects import Lock
from router.audit.anchors.s3 import S3Objects
from router.audit.anchors.witness import AnchorRefused

UNTIL = datetime(2030, 1, 1, tzinfo=UTC)


def failure(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "Operation")


@dataclass(slots=True)
class Client:
    """Answers like boto3; `error` is raised by the next call."""

    error: Exception | None = None
    location: str | None = None
    asked: list[Mapping[str, object]] = field(default_factory=list)

    def _ask(self, request: Mapping[str, object]) -> None:
        self.asked.append(request)
        if self.error is not None:
            raise self.error

    def put_object(self, **request: object) -> object:
        self._ask(request)
        return {}

    def get_object(self, **request: object) -> Mapping[str, object]:
        self._ask(request)
        return {"Body": BytesIO(str(request.get("VersionId")).encode())}

    def get_object_retention(self, **request: object) -> Mapping[str, object]:
        self._ask(request)
        return {"Retention": {"Mode": "COMPLIANCE", "RetainUntilDate": UNTIL}}

    def get_bucket_location(self, **request: object) -> Mapping[str, object]:
        self._ask(request)
        return {"LocationConstraint": self.location}

    def list_object_versions(self, **request: object) -> Mapping[str, object]:
        self._ask(request)
        if request.get("KeyMarker") == "heads/a":
            return {"Versions": [{"Key": "heads/b", "VersionId": "1"}]}
        versions = [("heads/a", "new"), ("heads/a", "old")]
        rows = [{"Key": key, "VersionId": version} for key, version in versions]
        more = {"NextKeyMarker": "heads/a", "NextVersionIdMarker": "old"}
        return {"Versions": rows, "IsTruncated": request["Prefix"] == "heads/", **more}


def test_an_object_is_created_only_if_absent_and_locked() -> None:
    client = Client()
    assert S3Objects(client, "acme-anchor").create("heads/a", b"note", UNTIL)
    (request,) = client.asked
    assert request["IfNoneMatch"] == "*"
    assert (request["ObjectLockMode"], request["ObjectLockRetainUntilDate"]) == (
        "COMPLIANCE",
        UNTIL,
    )
    client.error = failure("PreconditionFailed")
    assert not S3Objects(client, "acme-anchor").create("heads/a", b"note", UNTIL)


def test_the_first_version_is_what_was_anchored() -> None:
    assert S3Objects(Client(), "b").read("heads/a") == b"old"


def test_pages_of_keys_and_locks() -> None:
    assert list(S3Objects(Client(), "b").keys("heads/")) == ["heads/a", "heads/b"]
    assert S3Objects(Client(), "b").lock("heads/a") == Lock("COMPLIANCE", UNTIL)
    unlocked = Client(failure("NoSuchObjectLockConfiguration"))
    assert S3Objects(unlocked, "b").lock("heads/a").mode == ""


@pytest.mark.parametrize(
    ("told", "code"), [(None, "us-east-1"), ("EU", "eu-west-1"), ("eu-central-1", "eu-central-1")]
)
def test_where_the_bucket_is(told: str | None, code: str) -> None:
    assert S3Objects(Client(location=told), "b").region() == code


CALLS: list[Callable[[S3Objects], object]] = [
    lambda store: store.create("k", b"", UNTIL),
    lambda store: store.read("k"),
    lambda store: store.lock("k"),
    lambda store: list(store.keys("k")),
]


@pytest.mark.parametrize("call", CALLS)
def test_failures_name_the_object(call: Callable[[S3Objects], object]) -> None:
    with pytest.raises(AnchorRefused, match="s3://acme/k"):
        call(S3Objects(Client(failure("AccessDenied")), "acme"))


def test_an_unreachable_bucket_is_refused_too() -> None:
    away = Client(EndpointConnectionError(endpoint_url="s3"))
    with pytest.raises(AnchorRefused):
        S3Objects(away, "acme").create("k", b"", UNTIL)
