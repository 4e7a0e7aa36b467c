"""A boundary as AWS enforces it: one role per boundary, and service control policies.

Keys, as AWS's samples spell them: `bedrock:InferenceProfileArn` (one page's prose calls it
`aws:InferenceProfileArn`; no sample does) and `aws:RequestedRegion`, which is `unspecified` for
the model of a global profile (one sentence says `global`; every sample says `unspecified`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from policies.export.routes import Route, inside, is_open_ended, regions_of
from regions.places import Boundary

Json = str | int | Sequence["Json"] | Mapping[str, "Json"]
Document = Mapping[str, Json]

VERSION: Final = "2012-10-17"
INVOKE: Final = ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")
"""Converse and ConverseStream are authorized by the same two actions."""
MANTLE: Final = "bedrock-mantle:CreateInference"
PROFILE: Final = "bedrock:InferenceProfileArn"
REGION: Final = "aws:RequestedRegion"
UNSPECIFIED: Final = "unspecified"


def role_policy(routes: Iterable[Route], boundary: Boundary) -> Document:
    """The identity policy of a boundary's role: every route that stays inside, nothing else.

    A model may be run through the profile whose route it is on, and directly only where a
    route is direct: so a wider profile with a common region gains nothing.
    """
    chosen = [route for route in routes if inside(route, boundary)]
    together: dict[tuple[str, ...], list[Route]] = {}
    direct: set[str] = set()
    for route in chosen:
        if route.profile is None:
            direct.update(route.models)
        else:
            together.setdefault(route.models, []).append(route)
    statements: list[Json] = []
    if direct:
        alone: Json = {"Null": {PROFILE: "true"}}
        statements.append(_allow("Direct", sorted(direct), alone))
    for number, (models, sharing) in enumerate(sorted(together.items())):
        statements += _through(number, models, sharing)
    return {"Version": VERSION, "Statement": statements}


def _through(number: int, models: tuple[str, ...], sharing: list[Route]) -> list[Json]:
    """The profiles that share these models, and the models behind them."""
    profiles = sorted(route.profile for route in sharing if route.profile is not None)
    regional = [arn for arn in models if arn.split(":", 5)[3]]
    anywhere = [arn for arn in models if not arn.split(":", 5)[3]]
    behind: Json = {"ArnLike": {PROFILE: profiles}}
    found = [
        _allow(f"Profile{number}", profiles, None),
        _allow(f"Model{number}", regional, behind),
    ]
    if anywhere:
        unspecified: Json = {
            "ArnLike": {PROFILE: profiles},
            "StringEquals": {REGION: UNSPECIFIED},
        }
        found.append(_allow(f"Anywhere{number}", anywhere, unspecified))
    return found


def _allow(sid: str, resources: Sequence[str], condition: Json | None) -> Json:
    statement: dict[str, Json] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": list(INVOKE),
        "Resource": list(resources),
    }
    if condition is not None:
        statement["Condition"] = condition
    return statement


def service_control_policy(boundary: Boundary, partition: str = "aws") -> Document:
    """Denies every model outside a boundary, whatever a role allows.

    Profiles themselves are not denied by region: a call is processed where its model runs,
    and some profiles don't run in the region they are called from. A region that is added
    later is outside until the policy is exported again.
    """
    within = [*regions_of(boundary, partition)]
    if is_open_ended(boundary, partition):
        within.append(UNSPECIFIED)
    elsewhere: Json = {"StringNotEquals": {REGION: within}} if within else {}
    profiles = [
        f"arn:{partition}:bedrock:*:*:{kind}/*"
        for kind in (
            "application-inference-profile",
            "default-prompt-router",
            "inference-profile",
            "prompt-router",
        )
    ]
    models: dict[str, Json] = {
        "Sid": "ModelsOutside",
        "Effect": "Deny",
        "Action": list(INVOKE),
        "NotResource": profiles,
    }
    mantle: dict[str, Json] = {
        "Sid": "MantleOutside",
        "Effect": "Deny",
        "Action": [MANTLE],
        "Resource": "*",
    }
    if elsewhere:
        models["Condition"] = elsewhere
        mantle["Condition"] = elsewhere
    return {"Version": VERSION, "Statement": [models, mantle]}


def terraform(roles: Mapping[str, Document], control: Mapping[str, Document]) -> Document:
    """Roles and service control policies by boundary, as a Terraform JSON configuration.

    Who may assume the roles is the variable `router_principal`; the control policies are
    attached by whoever owns the organization.
    """
    assume: Json = {
        "Version": VERSION,
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "${var.router_principal}"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    resources: dict[str, Json] = {}
    if roles:
        resources["aws_iam_role"] = {
            label(name): {"name": f"domicile-{label(name)}", "assume_role_policy": _text(assume)}
            for name in roles
        }
        resources["aws_iam_role_policy"] = {
            label(name): {
                "name": "inside",
                "role": f"${{aws_iam_role.{label(name)}.id}}",
                "policy": _text(document),
            }
            for name, document in roles.items()
        }
    if control:
        resources["aws_organizations_policy"] = {
            label(name): {
                "name": f"domicile-{label(name)}",
                "type": "SERVICE_CONTROL_POLICY",
                "content": _text(document),
            }
            for name, document in control.items()
        }
    variable: Json = {"router_principal": {"type": "string"}}
    return {"variable": variable, "resource": resources} if roles else {"resource": resources}


def _text(value: Json) -> Json:
    """A document as Terraform wants it: an expression that gives its JSON text."""
    # `${` in a policy is a policy variable; only our own role principal is Terraform's.
    text = json.dumps(value, sort_keys=True)
    return text.replace("${var.", "\0").replace("${", "$${").replace("\0", "${var.")


def label(name: str) -> str:
    """A boundary's name as a label: letters, digits and dashes."""
    words = name.replace("+", " and ").replace(" - ", " without ").lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")
