import json

from policies.export.egress import allow_list, envoy, network_policy

HOSTS = {"a": ["x.example:8000", "y.example"], "b": ["y.example"], "c": ["z.example"]}


def test_the_hosts_of_what_is_inside_each_once() -> None:
    assert allow_list(HOSTS, ["b", "a", "unknown"]) == ("x.example:8000", "y.example")


def test_a_network_policy_allows_names_to_be_looked_up_and_these_addresses() -> None:
    made = network_policy("EU", ["10.1.0.0/16"], {"app": "domicile"})
    spec = made["spec"]
    assert isinstance(spec, dict)
    assert spec["policyTypes"] == ["Egress"]
    assert spec["podSelector"] == {"matchLabels": {"app": "domicile"}}
    dns, addresses = spec["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert addresses == {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}
    closed = network_policy("EU", [], {})["spec"]
    assert isinstance(closed, dict)
    assert len(closed["egress"]) == 1  # a rule without `to` would allow everything


def test_envoy_passes_by_name_and_nothing_else() -> None:
    made = json.loads(json.dumps(envoy("EU + CH", ["x.example:8000", "y.example"])))
    (chain,) = made["filter_chains"]
    assert chain["filter_chain_match"] == {"server_names": ["x.example", "y.example"]}
    assert chain["filters"][0]["typed_config"]["port_value"] == 443
    assert envoy("EU", [])["filter_chains"] == []
