"""Neighbours of the reports on configuration: what would be taken as it stands, and is told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from policies.endpoints import FEATURES, SURFACES
from regions.document import DocumentErrors
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.parameters import tables
from regions.footprints.table import Node
from router.config import ConfigError
from router.settings.checking import check
from tests.cases.built import BASELINE as WHOLE
from tests.cases.built import ENVIRONMENT, MAIN, RULES, Files, now
from tests.policies.samples import loaded as policy_of

FAR = 'url: "http://iad1"'
BASELINE = re.sub(r"  sonnet-(?:.*\n)+?(?=\w)|  (?:sonnet|claude): .*\n", "", WHOLE)
"""Without Amazon Bedrock, whose translation takes seconds to load."""
MANAGED = "https://eu.api.openai.com/v1"


def files(main: str = MAIN, rules: str = RULES) -> Files:
    return Files(main, BASELINE, rules)


def told(folder: Path, files: Files) -> str:
    """Why the files do not load."""
    with pytest.raises((DocumentErrors, ConfigError)) as caught:
        files.load(folder)
    return str(caught.value)


def baseline(old: str, new: str) -> Files:
    assert old in BASELINE
    return Files(baseline=BASELINE.replace(old, new, 1))


@pytest.mark.parametrize(
    "where", ["http://fra1", "http://fra1:80", "http://FRA1/", "http://fra1/v1", "http://fra1/v1/"]
)
def test_a_server_is_in_one_region(tmp_path: Path, where: str) -> None:
    """Who moves an endpoint's line and forgets its region would have it called German."""
    said = told(tmp_path, baseline(FAR, f'url: "{where}"'))
    assert "baseline.yaml:21:29: `iad` in self:iad1 and `fra` in self:fra1 are asked at" in said


def test_a_fleet_is_in_one_region(tmp_path: Path) -> None:
    found = "replicas: {kubernetes: llm/large}"
    far = baseline(FAR, found).baseline
    assert "a server is in one region" in told(
        tmp_path, Files(baseline=far.replace('url: "http://fra1"', found, 1))
    )


def test_servers_of_this_machine_stand_for_others(tmp_path: Path) -> None:
    far = baseline(FAR, 'url: "http://127.0.0.1:9000"').baseline
    files = Files(baseline=far.replace("http://fra1", "http://127.0.0.1:9000", 1))
    assert len(files.load(tmp_path).policy.endpoints) == 5


def test_what_is_no_url_is_no_place_to_compare() -> None:
    """`fra1:8000/v1` and `iad1:8000/v1` were taken for one server: so written, none has a host."""
    far, near = (
        f"  {name}: {{kind: vllm, model: m, region: self:{name}, url: '{name}:8000/v1'}}\n"
        for name in ("iad1", "fra1")
    )
    regions = "regions: {self:fra1: {country: DE}, self:iad1: {country: US}}\n"
    assert len(policy_of(f"{regions}endpoints:\n{far}{near}").endpoints) == 2


@pytest.mark.parametrize("where", ["http://fra1:8001", "http://fra1/us/v1", "https://fra1"])
def test_another_port_or_path_is_another_server(tmp_path: Path, where: str) -> None:
    assert baseline(FAR, f'url: "{where}"').load(tmp_path).policy.endpoints["iad"].urls == (where,)


def test_keys_and_prompts_never_go_to_a_vendor_in_clear(tmp_path: Path) -> None:
    """Smana/runlore#177: a base URL without TLS, with a key."""
    said = told(tmp_path, baseline(MANAGED, "http://eu.api.openai.com/v1"))
    assert "endpoint `openai-eu`" in said
    assert "would go in clear" in said
    assert "sk-eu-secret" not in said


WRONG = [
    ("features: [tools,", "features: [tool,", "feature `tool` is not known; did you mean `tools`?"),
    (
        "features: [tools, json_schema",
        "features: [tools, json_shema",
        "did you mean `json_schema`?",
    ),
    ("model: tiny, ", "model: tiny, surfaces: [chat], ", "surface `chat` is not known; use one of"),
    ("model: tiny", 'model: "${MODEL}"', "nothing is filled in here: `${MODEL}`"),
    ("{large: [fra, par, iad]}", "{large: [fra, par, fra]}", "endpoint `fra` stands twice"),
]


@pytest.mark.parametrize(("old", "new", "what"), WRONG)
def test_a_word_that_nobody_reads_is_told(tmp_path: Path, old: str, new: str, what: str) -> None:
    said = told(tmp_path, baseline(old, new))
    assert said.startswith(str(tmp_path / "baseline.yaml") + ":") or "baseline.yaml:" in said
    assert what in said


def test_the_words_are_those_of_the_tables() -> None:
    """What a call may need can be offered, and what is offered can be needed."""
    needed, seen = set[str](), set[int]()
    pending: list[Node] = [table.request for table in tables().values()]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        needed |= {one for one in (node.feature,) if one}
        for rule in node.keys.values():
            if rule is not None:
                needed |= {one for one in (rule.feature,) if one}
                pending += [rule.node] if rule.node is not None else []
        pending += node.kinds.values()
    assert needed | {"stream_usage"} == FEATURES
    assert tables().keys() - {"invoke_model", "places"} == SURFACES


@pytest.mark.parametrize(
    ("old", "new"),
    [("dir: log,", 'dir: "${LOG_DIR}",'), ("dir: log,", 'dir: "{{ log }}",'),
     ("dir: log,", 'dir: "~/log",'), ("file: keys.yaml", "file: $(KEYS)")],
)  # fmt: skip
def test_no_variable_is_taken_for_a_name(tmp_path: Path, old: str, new: str) -> None:
    """mozilla-ai/any-llm#838: a variable that nobody replaced became the value. Here the region
    log would lie in a folder of that name."""
    assert old in MAIN
    said = told(tmp_path, files(main=MAIN.replace(old, new)))
    assert "nothing is filled in here" in said
    assert list(tmp_path.glob("*LOG*")) == []


@pytest.mark.parametrize("left", ["${OPENAI_KEY}", "$(OPENAI_KEY)", "{{ key }}", "<your-key>"])
def test_nor_is_the_placeholder_of_a_secret_a_secret(tmp_path: Path, left: str) -> None:
    environment = {**ENVIRONMENT, "OPENAI_EU": left}
    said = told(tmp_path, replace(files(), environment=environment))
    assert "endpoint `openai-eu`: its credential is a template that nobody filled in" in said


BLANK = [
    ("model: tiny", "model: ''", "`endpoints.fra.model`"),
    ("model: tiny", "model: ' tiny'", "`endpoints.fra.model`"),
    ('url: "http://fra1"', "url: ''", "`endpoints.fra.url`"),
    ("  assistant: {", "  '': {", "`models.`"),
    ("  assistant: {", "  'assistant ': {", "`models.assistant `"),
]


@pytest.mark.parametrize(("old", "new", "what"), BLANK)
def test_what_is_left_empty_is_told(tmp_path: Path, old: str, new: str, what: str) -> None:
    """As a template leaves it that was given nothing. It passed every check, and each request was
    then told that there is no such model."""
    assert what in told(tmp_path, baseline(old, new))


def test_a_log_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    said = told(tmp_path, files(main=MAIN.replace("dir: log,", "dir: '',")))
    assert "`log.dir`: string should have at least 1 character" in said


IN_VAIN = [
    ("baseline", 'url: "http://fra1", ', "", "endpoint `fra` is nowhere"),
    ("baseline", 'url: "http://fra1"', "replicas: {}", "endpoint `fra` is nowhere"),
    ("baseline", 'url: "http://fra1"', "urls: []", "endpoint `fra` is nowhere"),
    ("baseline", "model: tiny, ", "model: tiny, surfaces: [embeddings], ",
     "endpoint `fra` is never asked: `chat.completions` is all that is served"),
    ("baseline", "iad]}}", "iad]}, timeouts: {answer: 10m}}",
     "`models.assistant.timeouts.answer` of 600 s is never reached"),
    ("main", "first_token: 2s", "first_token: 90s",
     "`router.limits.first_token` of 90 s is never reached"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "old", "new", "what"), IN_VAIN)
def test_what_can_never_come_to_pass_is_told(
    tmp_path: Path, where: str, old: str, new: str, what: str
) -> None:
    one = baseline(old, new) if where == "baseline" else files(main=MAIN.replace(old, new))
    found = check(one.write(tmp_path), ENVIRONMENT, now()).findings
    codes = ("surface_unserved", "time_cut_short", "no_address")
    (said,) = [one.message for one in found if one.code in codes]
    assert what in said


@pytest.mark.parametrize("more", ["http://fra1", "http://FRA1:80/", "http://fra1/v1"])
def test_a_server_is_one_replica(tmp_path: Path, more: str) -> None:
    """Listed twice, it gets twice what it has room for."""
    twice = baseline('url: "http://fra1"', f'urls: ["http://fra1", "{more}"]')
    assert "`fra` lists a server twice" in told(tmp_path, twice)


def test_an_endpoint_is_of_one_tier(tmp_path: Path) -> None:
    """It would be asked twice, and a small answer be as dear as a large one."""
    both = baseline("{large: [fra, par, iad]}", "{small: [fra], large: [fra, par]}")
    assert "endpoint `fra` is of another tier too; leave it in one" in told(tmp_path, both)


@pytest.mark.parametrize("content", ["", "\n", "  \n\n"])
def test_a_rule_file_that_is_empty_for_a_moment_loses_no_rule(tmp_path: Path, content: str) -> None:
    """Written anew in place, it is empty first; its rules narrow, and must not go with it."""
    assert "rules.yaml:1:1: the file is empty" in told(tmp_path, files(rules=content))
    for rules in ("version: 1\n", "rules: []\n", "# none now\n"):
        loaded = files(rules=rules).load(tmp_path)
        assert loaded.policy.rules == ()
    assert files(rules=RULES).load(tmp_path).policy.rules != ()


def test_both_listeners_need_an_address(tmp_path: Path) -> None:
    main = MAIN.replace("region: self:fra1", "region: self:fra1\n  listen: 127.0.0.1:9090", 1)
    assert "`listen` and `admin` are one address" in told(tmp_path, files(main=main))


@pytest.mark.parametrize("host", ["ai-gateway.vercel.sh", "api.scaleway.ai", "models.github.ai"])
def test_a_gateway_of_others_is_not_ones_own_server(tmp_path: Path, host: str) -> None:
    loaded = baseline(FAR, f'url: "https://{host}/v1"').load(tmp_path)
    where = footprint(loaded.policy.endpoints["iad"], PLAIN_CALL, loaded.catalog, loaded.loaded_at)
    assert not where.process.is_known


@pytest.mark.parametrize(
    "host", ["llm.trycloudflare.com", "a1b2.ngrok-free.app", "d1.cloudfront.net", "x.workers.dev"]
)
def test_a_tunnel_is_in_no_region(tmp_path: Path, host: str) -> None:
    """kcolemangt/llm-router#3, nextcloud/all-in-one#5089: whoever runs it reads each request first,
    wherever the server stands."""
    loaded = baseline(FAR, f'url: "https://{host}/v1"').load(tmp_path)
    where = footprint(loaded.policy.endpoints["iad"], PLAIN_CALL, loaded.catalog, loaded.loaded_at)
    assert not where.process.is_known


@pytest.mark.parametrize("name", ["more.yml", "more.YAML", "More.Yml"])
def test_a_rule_file_that_the_pattern_misses_is_told(tmp_path: Path, name: str) -> None:
    """It looks as if its rules applied; an editor's own files don't."""
    (tmp_path / "rules").mkdir()
    for one in ("a.yaml", name, ".a.yaml.swp", ".#a.yaml", "a.yaml~", "notes.txt"):
        (tmp_path / "rules" / one).write_text(RULES)
    path = Files(
        baseline=BASELINE, main=MAIN.replace("rules: [rules.yaml]", 'rules: ["rules/*.yaml"]')
    ).write(tmp_path)
    found = check(path, ENVIRONMENT, now())
    said = [one.message for one in found.findings if one.code == "file_unread"]
    assert said == [
        f"`{tmp_path}/rules/{name}` is read by nobody: `rules/*.yaml` does not find it; rename it"
    ]


@pytest.mark.parametrize(
    ("peer", "what"),
    [("us.llm.example.com", "is not `https://HOST[:PORT]`"),
     ("http://us.llm.example.com", "would go in clear"),
     ("https://key@us.llm.example.com", "is not `https://HOST[:PORT]`"),
     ("https://us.llm.example.com\\r\\nx-evil: 1", "plain ascii"),
     ("ftp://us.llm.example.com", "is not `https://HOST[:PORT]`")],
)  # fmt: skip
def test_nobody_is_sent_to_where_no_router_can_be(tmp_path: Path, peer: str, what: str) -> None:
    """Its address becomes `location`: clients send prompt and key there."""
    peers = f'region: self:fra1\n  peers: [{{region: self:iad1, url: "{peer}"}}]'
    said = told(tmp_path, files(main=MAIN.replace("region: self:fra1", peers, 1)))
    assert "`router.peers.0.url`" in said
    assert what in said
    for sound in ("https://us.llm.example.com:8443/llm", "http://10.0.0.7:8080"):
        main = MAIN.replace("region: self:fra1", peers.replace(peer, sound), 1)
        assert files(main=main).load(tmp_path).config.router.peers[0].url == sound
