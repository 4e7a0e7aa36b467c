"""Endpoints the operator runs: the region, the operator and what is kept are declared."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from regions.footprints.draft import DECLARED, Draft, Vendor
from regions.places import Region

# A self-operated endpoint can't live at a vendor's own host; one that says so is a mistake.
MANAGED_HOSTS = (
    ".ai-gateway.vercel.sh",
    ".ai.cloud.ovh.net",
    ".ai21.com",
    ".aleph-alpha.com",
    ".aliyuncs.com",
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".amazonaws.eu",
    ".anthropic.com",
    ".api.aws",
    ".api.cloudflare.com",
    ".api.githubcopilot.com",
    ".api.nvidia.com",
    ".azure.cn",
    ".azure.com",
    ".azure.us",
    ".baidubce.com",
    ".baseten.co",
    ".bigmodel.cn",
    ".cerebras.ai",
    ".chutes.ai",
    ".cloud.ibm.com",
    ".cohere.ai",
    ".cohere.com",
    ".databricks.com",
    ".deepinfra.com",
    ".deepseek.com",
    ".endpoints.huggingface.cloud",
    ".eurouter.ai",
    ".featherless.ai",
    ".fireworks.ai",
    ".friendli.ai",
    ".gateway.ai.cloudflare.com",
    ".googleapis.com",
    ".groq.com",
    ".huggingface.co",
    ".hyperbolic.xyz",
    ".inference.net",
    ".lambda.ai",
    ".minimax.io",
    ".mistral.ai",
    ".models.github.ai",
    ".moonshot.ai",
    ".moonshot.cn",
    ".nebius.ai",
    ".nebius.com",
    ".novita.ai",
    ".nscale.com",
    ".openai.com",
    ".openrouter.ai",
    ".parasail.io",
    ".perplexity.ai",
    ".portkey.ai",
    ".reka.ai",
    ".replicate.com",
    ".requesty.ai",
    ".sambanova.ai",
    ".scaleway.ai",
    ".siliconflow.cn",
    ".siliconflow.com",
    ".snowflakecomputing.com",
    ".stepfun.com",
    ".tencentcloudapi.com",
    ".together.ai",
    ".together.xyz",
    ".upstage.ai",
    ".venice.ai",
    ".volces.com",
    ".writer.com",
    ".x.ai",
    ".z.ai",
)

# Tunnels and content networks: whoever asks there is heard by an edge of theirs, in any place.
EDGES = (
    ".akamaized.net",
    ".azurefd.net",
    ".cloudfront.net",
    ".edgekey.net",
    ".fastly.net",
    ".fly.dev",
    ".lhr.life",
    ".loca.lt",
    ".modal.run",
    ".ngrok-free.app",
    ".ngrok-free.dev",
    ".ngrok.app",
    ".ngrok.dev",
    ".ngrok.io",
    ".pages.dev",
    ".pinggy.link",
    ".proxy.runpod.net",
    ".serveo.net",
    ".trycloudflare.com",
    ".workers.dev",
)

_LOOPBACK = re.compile(r"127(?:\.\d{1,3}){3}")


def describe(draft: Draft) -> None:
    """One declared region; `operate` and `retain` as configured, unknown where they are not."""
    region = draft.own_region("self")
    if region is None:
        return
    managed = [h for h in hosts(draft.endpoint.urls) if is_managed(h)]
    if managed:
        draft.process_unknown(
            f"the provider of host `{managed[0]}`: it is not self-operated; set the endpoint's "
            "`kind` to its vendor"
        )
    for host in hosts(draft.endpoint.urls):
        if host.endswith(EDGES):
            draft.process_unknown(
                f"where host `{host}` reads a request: it is of a tunnel or a content network; "
                "give the server's own address"
            )
    places = draft.catalog.atlas.place(region.id)
    draft.processed_in(places, f"runs in {region.id} ({region.country})", DECLARED)
    draft.storage = places
    if region.provider != "self":
        # Rented machines: the cloud's owner can be made to reach into them, whoever runs them.
        draft.operated_by(region.partition.name, (region.country,))
    if draft.endpoint.operate is None:
        draft.operate_unknown("`operate`: the countries whose law reaches the operator, as `[DE]`")
    if draft.endpoint.retain is None:
        draft.retain_unknown("`retain`: what the servers keep, as `nothing` or a region")


def hosts(urls: tuple[str, ...]) -> list[str]:
    """Host names of URLs, lower case; a URL without a scheme is read as `host[:port]/…`.

    What can't be read as a URL stands for its own host, which no vendor has.
    """
    return [_host(url) for url in urls]


def _host(url: str) -> str:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname
    except ValueError:
        host = None
    return (host or url).rstrip(".")


def one_region(draft: Draft, host: str, region: Region | None) -> None:
    """Some hosts name their region, as `x.eastus.models.ai.azure.com` (Snowflake's as
    `x.east-us-2.azure…`), behind the customer's own name: the call goes there, whatever `source`
    says."""
    if region is None:
        return
    known = {one.id for one in draft.catalog.atlas.regions}
    for label in host.split(".")[1:]:
        ids = {f"{region.provider}:{label}", f"{region.provider}:{label.replace('-', '')}"} & known
        other_cloud = label in {"aws", "azure", "gcp"} - {region.provider}
        if other_cloud or (ids and region.id not in ids):
            draft.process_unknown(
                f"one region: `{host}` names `{label}`; make `source` equal to it"
            )


def is_managed(host: str) -> bool:
    """Whether a host belongs to a vendor the catalog knows."""
    return any(host == suffix[1:] or host.endswith(suffix) for suffix in MANAGED_HOSTS)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: its place is the router's own."""
    return host in {"localhost", "::1"} or bool(_LOOPBACK.fullmatch(host))


VENDOR = Vendor(
    describe,
    place_parameters={"kv_transfer_params": "kv_transfer_params"},
    self_operated=True,
)
