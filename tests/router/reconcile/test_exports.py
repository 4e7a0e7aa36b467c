from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from router.reconcile.exports import azure_calls, gcp_calls
from router.reconcile.model import Call
from router.reconcile.reading import Fault
from router.reconcile.store import Store

AZURE = {
    "time": "2026-07-01T09:15:30.1234567Z", "category": "RequestResponse",
    "resourceId": "/SUBSCRIPTIONS/X", "operationName": "ChatCompletions_Create",
    "durationMs": 812, "resultSignature": "200", "correlationId": "corr-1",
    "location": "Sweden Central",
    "properties": json.dumps({"modelDeploymentName": "prod-chat", "modelName": "gpt-4o"}),
}  # fmt: skip
GCP = {
    "insertId": "e-1", "timestamp": "2026-07-01T10:15:30.123456789Z",
    "resource": {"labels": {"location": "europe-west4"}},
    "protoPayload": {
        "serviceName": "aiplatform.googleapis.com", "status": {},
        "methodName": "google.cloud.aiplatform.v1.PredictionService.StreamGenerateContent",
        "resourceName": "projects/p/locations/europe-west4/publishers/google/models/gemini-2.5-pro",
        "authenticationInfo": {"principalEmail": "router@p.iam.gserviceaccount.com"},
    },
}  # fmt: skip


def put(tmp_path: Path, *records: object) -> Path:
    path = tmp_path / "PT1H.json"
    path.write_text("\n".join(json.dumps(one) for one in records))
    return path


def test_azure(tmp_path: Path) -> None:
    usage = {**AZURE, "category": "AzureOpenAIRequestUsage"}
    listed = {**AZURE, "operationName": "ListDeployments"}
    throttled = {**AZURE, "resultSignature": "429", "properties": {"modelName": "gpt-4o"}}
    found = [*azure_calls(put(tmp_path, AZURE, usage, listed, throttled))]
    first, second = (one for one in found if isinstance(one, Call))
    assert (first.call_id, first.region, first.model) == (
        "corr-1", "azure:swedencentral", "prod-chat",
    )  # fmt: skip
    assert (first.ran, second.ran, second.model, first.place) == (True, False, "gpt-4o", "")


def test_gcp(tmp_path: Path) -> None:
    other = {**GCP, "protoPayload": {**GCP["protoPayload"], "serviceName": "x"}}  # type: ignore[dict-item]
    denied = {**GCP, "protoPayload": {**GCP["protoPayload"], "status": {"code": 7}}}  # type: ignore[dict-item]
    bare = {**GCP, "protoPayload": {**GCP["protoPayload"], "resourceName": ""}}  # type: ignore[dict-item]
    found = [*gcp_calls(put(tmp_path, GCP, other, denied, bare))]
    first, second, third = (one for one in found if isinstance(one, Call))
    assert (first.region, first.model, first.ran) == ("gcp:europe-west4", "gemini-2.5-pro", True)
    assert first.principal == "router@p.iam.gserviceaccount.com"
    assert (second.ran, third.region, third.model) == (False, "gcp:europe-west4", "")


def test_documents_of_event_hubs_and_of_the_command_line(tmp_path: Path) -> None:
    assert len([*azure_calls(put(tmp_path, {"records": [AZURE, AZURE]}))]) == 2
    path = tmp_path / "entries.json"
    path.write_text(json.dumps([GCP], indent=2))
    assert len([*gcp_calls(path)]) == 1


def test_what_is_broken_is_named(tmp_path: Path) -> None:
    odd = {**AZURE, "properties": "{", "location": 5}
    for read in (azure_calls, gcp_calls):
        path = put(tmp_path, odd)
        path.write_text(path.read_text() + "\n{nope\n")
        fault = [*read(path)][-1]
        assert isinstance(fault, Fault)
        assert fault.where.number == 2


def test_an_event_in_two_files_counts_once_and_a_copied_id_hides_none(tmp_path: Path) -> None:
    """Exports overlap. Google's insert ids tell entries apart only together with their time."""
    paid = {**GCP, "protoPayload": {**GCP["protoPayload"], "resourceName": "publishers/x"}}  # type: ignore[dict-item]
    later = {**GCP, "timestamp": "2026-07-01T11:15:30Z"}
    with closing(Store()) as store:
        for one in azure_calls(put(tmp_path, AZURE, AZURE, {**AZURE, "correlationId": "corr-2"})):
            assert isinstance(one, Call)
            assert store.add_call(one) is None
        conflicts = []
        for one in gcp_calls(put(tmp_path, GCP, GCP, paid, later)):
            assert isinstance(one, Call)
            conflicts.append(store.add_call(one) is not None)
        counts = store.rows("select source, count(*) from calls group by source order by source")
    assert counts == [("azure", 2), ("gcp", 3)]
    assert conflicts == [False, False, True, False]


def test_the_two_entries_of_an_operation_are_one_call(tmp_path: Path) -> None:
    """`LogEntryOperation`: entries with one id are one operation's; a lone one is both ends."""
    ends = {"first": {"first": True}, "last": {"last": True}, "lone": {"first": True, "last": True}}

    def entry(id_: str, which: str, second: int) -> dict[str, object]:
        operation = {"id": id_, "producer": "aiplatform.googleapis.com", **ends[which]}
        named = {"insertId": f"{id_}-{which}-{second}", "timestamp": f"2026-07-01T10:15:{second}Z"}
        return {**GCP, **named, "operation": operation}

    rows = [
        entry("a", "first", 10), entry("b", "first", 11), entry("a", "last", 12),
        entry("b", "last", 13), entry("c", "lone", 14), entry("c", "lone", 15), GCP,
    ]  # fmt: skip
    with closing(Store()) as store:
        for one in gcp_calls(put(tmp_path, *rows)):
            assert isinstance(one, Call)
            assert store.add_call(one) is None
        assert store.rows("select count(*) from calls") == [(5,)]
