"""A boundary as the network enforces it: the hosts that endpoints inside it are called at.

Kubernetes' own NetworkPolicy knows addresses, not names, so it allows DNS and the addresses
given, and refuses the rest; allow lists by name are for an egress proxy (Envoy), which is what
should stand behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from policies.export.aws import Document, Json, label

DNS_PORT: Final = 53


def allow_list(hosts: Mapping[str, Iterable[str]], inside: Iterable[str]) -> tuple[str, ...]:
    """The hosts of the endpoints inside, each once, in order.

    Args:
        hosts: endpoint → its hosts, as `name` or `name:port`.
        inside: the endpoints inside the boundary.
    """
    return tuple(sorted({host for name in inside for host in hosts.get(name, ())}))


def network_policy(name: str, addresses: Sequence[str], selector: Mapping[str, str]) -> Document:
    """A NetworkPolicy of the pods selected: DNS, and these addresses (CIDR), nothing else."""
    dns: Json = {
        "to": [{"namespaceSelector": {}}],
        "ports": [{"protocol": p, "port": DNS_PORT} for p in ("UDP", "TCP")],
    }
    egress: list[Json] = [dns]
    if addresses:
        blocks: list[Json] = [{"ipBlock": {"cidr": address}} for address in sorted(addresses)]
        egress.append({"to": blocks})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"domicile-{label(name)}"},
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Egress"],
            "egress": egress,
        },
    }


def envoy(name: str, hosts: Sequence[str]) -> Document:
    """An Envoy listener: TLS to these names passes by its SNI, the rest is closed."""
    names = sorted({host.partition(":")[0] for host in hosts})
    chain: Json = {
        "filter_chain_match": {"server_names": names},
        "filters": [
            {
                "name": "envoy.filters.network.sni_dynamic_forward_proxy",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.network."
                    "sni_dynamic_forward_proxy.v3.FilterConfig",
                    "port_value": 443,
                },
            }
        ],
    }
    return {
        "name": f"domicile-{label(name)}",
        "listener_filters": [{"name": "envoy.filters.listener.tls_inspector"}],
        "filter_chains": [chain] if names else [],
    }
