"""Every request there can be, as formulas: who asks, what each source says, what that means.

A request is a tenant, an app, a purpose, and for every attribute the values that each kind
of source says. What no condition, record or default tells apart stands for one another, so
a finite number of requests stands for all. Each policy reads the same request by its own
declarations: a value it doesn't declare, or from a source it doesn't accept, is not said
there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from policies.attributes import (
    AUTHORITATIVE,
    CLAIMED,
    CLASSIFIER,
    Attributes,
    Supplied,
    gather,
)
from policies.conditions import Condition, Is
from policies.engine import Ask
from policies.model import Grant, Policy
from policies.proving.logic import Logic

PURPOSES: Final = ("interactive", "batch", "shadow", "probe")
# `tenant` and `app` speak through their records only, which are the same for every request.
_FROM_KEYS: Final = ("key", "token", "operator")
_Name = TypeVar("_Name", bound=Hashable)
_Roles = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Said:
    """One value of one attribute that one kind of source may say; `literal` is true if it does."""

    attribute: str
    value: str
    source: str
    roles: _Roles
    literal: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request as found: one of those that stand for all.

    `said` holds attribute, value and source; `opened` the attributes whose classifier did
    not finish. Of attributes that make no difference nothing is said.
    """

    tenant: str
    app: str | None
    purpose: str
    said: tuple[tuple[str, str, str], ...] = ()
    opened: frozenset[str] = frozenset()

    def ask(self, policy: Policy) -> Ask:
        """The same request as an engine is asked, by what this policy accepts of it."""
        supplied = [*records(policy, self.tenant, self.app), *self._accepted(policy)]
        trusted = policy.trusted(self.app)
        opened = [name for name in self.opened if _may_open(policy, name)]
        attributes = gather(policy.declared, supplied, trusted, opened)
        return Ask(self.tenant, self.app, Attributes(attributes.states), self.purpose)

    def _accepted(self, policy: Policy) -> Iterator[Supplied]:
        for name, value, source in self.said:
            trusted = name in policy.trusted(self.app)
            declared = policy.declared.get(name)
            if declared is None or value not in declared.values:
                continue
            if role(policy, name, source, trusted):
                yield Supplied(name, (value,), source)

    def __str__(self) -> str:
        words = [f"tenant `{self.tenant}`"]
        words += [f"app `{self.app}`"] if self.app is not None else []
        words += [f"purpose `{self.purpose}`"] if self.purpose != "interactive" else []
        words += [f"`{name}: {value}` said by {source}" for name, value, source in self.said]
        words += [f"`{name}` not looked for to the end" for name in sorted(self.opened)]
        return ", ".join(words if self.said or self.opened else [*words, "saying nothing"])


def records(policy: Policy, tenant: str, app: str | None) -> Iterator[Supplied]:
    """What the tenant's and the app's own records say."""
    of_tenant = policy.tenants.get(tenant)
    of_app = policy.apps.get(app) if app is not None else None
    for name, values in of_tenant.attributes.items() if of_tenant is not None else ():
        yield Supplied(name, tuple(sorted(values)), "tenant")
    for name, values in of_app.attributes.items() if of_app is not None else ():
        yield Supplied(name, tuple(sorted(values)), "app")


def role(policy: Policy, attribute: str, source: str, trusted: bool) -> str:
    """`authoritative`, `claim`, or empty: this policy refuses the source for the attribute."""
    declared = policy.declared.get(attribute)
    if declared is None:
        return ""
    meant = "app" if trusted and source in CLAIMED else source
    if meant not in declared.sources:
        return ""
    return "authoritative" if meant in AUTHORITATIVE else "claim"


def _may_open(policy: Policy, attribute: str) -> bool:
    declared = policy.declared.get(attribute)
    return declared is not None and any(s.startswith(CLASSIFIER) for s in declared.sources)


class Requests:
    """The space of requests that one policy, or two compared, may be asked about.

    Args:
        conditions: every condition whose truth will be asked for.
        granted: only tenants that have a grant; the others get nothing anyway.
    """

    def __init__(
        self,
        logic: Logic,
        policies: Sequence[Policy],
        conditions: Iterable[Condition],
        granted: bool = True,
    ) -> None:
        self.logic = logic
        self.policies = policies
        self._mentioned = _mentioned(conditions)
        self._granted = granted
        self.tenants: Mapping[str, int] = self._tenants()
        self.apps: Mapping[str | None, int] = self._apps()
        self.purposes: Mapping[str, int] = self._one_of(PURPOSES)
        self.said: Mapping[str, tuple[Said, ...]] = self._speakers()
        self.opened: Mapping[str, int] = {
            name: logic.fresh()
            for name in self.said
            if any(_may_open(policy, name) for policy in policies)
        }
        self._states: dict[tuple[int, str], tuple[Mapping[str, int], int]] = {}

    # -- who asks ----------------------------------------------------------------------

    @cached_property
    def alike(self) -> Mapping[str, tuple[str, ...]]:
        """The tenant that stands for each class → all tenants of the class."""
        classes: dict[Hashable, list[str]] = {}
        names = sorted({name for policy in self.policies for name in policy.tenants})
        for name in names:
            known = [policy.tenants.get(name) for policy in self.policies]
            grants: list[Grant | None] = [t.grant if t is not None else None for t in known]
            if self._granted and not any(grants):
                continue
            told = tuple(
                (g, t.models, self._told(t.attributes)) if t is not None else None
                for g, t in zip(grants, known, strict=True)
            )
            own = name if name in self._mentioned.get("tenant", ()) else ""
            classes.setdefault((own, told), []).append(name)
        return {names[0]: tuple(names) for names in classes.values()}

    def _tenants(self) -> dict[str, int]:
        return self._one_of(self.alike)

    def _apps(self) -> dict[str | None, int]:
        first: dict[Hashable, str | None] = {}
        nothing = (frozenset[str](), frozenset[object]())
        names = sorted({name for policy in self.policies for name in policy.apps})
        for name in (None, *names):
            known = [
                policy.apps.get(name) if name is not None else None for policy in self.policies
            ]
            told = tuple(
                (a.trusted.intersection(self._mentioned), self._told(a.attributes))
                if a is not None
                else nothing
                for a in known
            )
            own = name if name in self._mentioned.get("app", ()) else ""
            first.setdefault((own, told), name)
        return self._one_of(first.values())

    def _told(self, attributes: Mapping[str, frozenset[str]]) -> Hashable:
        return frozenset(item for item in attributes.items() if item[0] in self._mentioned)

    def _one_of(self, names: Iterable[_Name]) -> dict[_Name, int]:
        found = {name: self.logic.fresh() for name in names}
        self.logic.add(*found.values() or (self.logic.false,))
        self.logic.distinct(list(found.values()), self.logic.true)
        return found

    # -- what is said ------------------------------------------------------------------

    def _speakers(self) -> dict[str, tuple[Said, ...]]:
        names = sorted({name for policy in self.policies for name in policy.declared})
        names = [name for name in names if name in self._mentioned]
        return {name: tuple(self._speakers_of(name)) for name in names}

    def _speakers_of(self, name: str) -> Iterator[Said]:
        values = self._values(name)
        for roles, source in self._kinds(name).items():
            for value in values:
                yield Said(name, value, source, roles, self.logic.fresh())

    def _kinds(self, name: str) -> dict[_Roles, str]:
        """The sources of an attribute that differ in what they may do, one of each kind."""
        found: dict[_Roles, str] = {}
        declared = [p.declared[name] for p in self.policies if name in p.declared]
        heard = sorted({s for d in declared for s in d.sources if s.startswith(CLASSIFIER)})
        for source in ("header", "body", *_FROM_KEYS, *heard):
            roles = tuple(
                (role(p, name, source, False), role(p, name, source, True)) for p in self.policies
            )
            if any(any(pair) for pair in roles):
                found.setdefault(roles, source)
        return found

    def _values(self, name: str) -> list[str]:
        """Values told apart one by one, and one for each kind of those that are not."""
        spoken: dict[Hashable, str] = {}
        every = {v for p in self.policies if name in p.declared for v in p.declared[name].values}
        for value in sorted(every):
            kind = tuple(
                name in p.declared and value in p.declared[name].values for p in self.policies
            )
            own = value if value in self._told_apart(name) else ""
            spoken.setdefault((own, kind), value)
        return sorted(spoken.values())

    def _told_apart(self, name: str) -> frozenset[str]:
        return self._mentioned.get(name, frozenset()) | self._recorded.get(name, frozenset())

    @cached_property
    def _recorded(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for policy in self.policies:
            for declared in policy.declared.values():
                found[declared.name] = found.get(declared.name, frozenset()) | declared.default
            carried = [holder.attributes for holder in policy.tenants.values()]
            carried += [holder.attributes for holder in policy.apps.values()]
            for name, values in (item for held in carried for item in held.items()):
                found[name] = found.get(name, frozenset()) | values
        return found

    @property
    def choices(self) -> tuple[int, ...]:
        """What makes a request less plain: each thing said, an app, another purpose."""
        spoken = tuple(one.literal for many in self.said.values() for one in many)
        unusual = (-self.apps[None], -self.purposes["interactive"])
        return (*spoken, *self.opened.values(), *unusual)

    @cached_property
    def terse(self) -> int:
        """While it is assumed, a request says at most one thing about each attribute."""
        when = self.logic.fresh()
        for many in self.said.values():
            self.logic.distinct([one.literal for one in many], when)
        return when

    # -- what that means ---------------------------------------------------------------

    def has_any(self, policy: int, name: str, values: frozenset[str]) -> tuple[int, int]:
        """Whether a comparison is true, and whether it is not false, in the policy's reading."""
        if name in ("tenant", "app", "purpose"):
            here = self.logic.any_of(self._built_in(name, value) for value in values)
            return here, here
        if name not in self.policies[policy].declared:
            return self.logic.false, self.logic.true
        held, closed = self._state(policy, name)
        true = self.logic.any_of(held[value] for value in values if value in held)
        return true, self.logic.any_of((true, -closed))

    def _built_in(self, name: str, value: str) -> int:
        if name == "app":
            return self.apps.get(value, self.logic.false)
        table = self.tenants if name == "tenant" else self.purposes
        return table.get(value, self.logic.false)

    def _state(self, policy: int, name: str) -> tuple[Mapping[str, int], int]:
        known = self._states.get((policy, name))
        if known is None:
            known = self._states[policy, name] = self._read(policy, name)
        return known

    def _read(self, policy: int, name: str) -> tuple[Mapping[str, int], int]:
        """The values an attribute has, and whether these are all: `attributes.gather`."""
        logic, declared = self.logic, self.policies[policy].declared[name]
        values = {one.value for one in self.said[name]} | self._recorded.get(name, frozenset())
        known = {v: self._known(policy, name, v) for v in values & declared.values}
        settled = logic.any_of(known.values())
        held: dict[str, int] = {}
        for value, literal in known.items():
            claimed = self._spoken(policy, name, value, "claim")
            silent = -settled if value in declared.default else logic.false
            held[value] = logic.any_of((literal, claimed, silent))
        opened = self.opened[name] if _may_open(self.policies[policy], name) else logic.false
        closed = logic.true if declared.default else settled
        return held, logic.all_of((closed, -opened))

    def _known(self, policy: int, name: str, value: str) -> int:
        """Whether an authoritative source says it: a record, or somebody who may."""
        carried = [
            literal
            for tenant, literal in self.tenants.items()
            if value in self._carried(policy, "tenant", tenant, name)
        ]
        carried += [
            literal
            for app, literal in self.apps.items()
            if value in self._carried(policy, "app", app, name)
        ]
        said = self._spoken(policy, name, value, "authoritative")
        return self.logic.any_of((*carried, said))

    def _carried(self, policy: int, kind: str, holder: str | None, name: str) -> frozenset[str]:
        tables = self.policies[policy].tenants if kind == "tenant" else self.policies[policy].apps
        known = tables.get(holder) if holder is not None else None
        return known.attributes.get(name, frozenset()) if known is not None else frozenset()

    def _spoken(self, policy: int, name: str, value: str, wanted: str) -> int:
        trusted = self._trusted(policy, name)
        parts = []
        for one in self.said[name]:
            if one.value != value:
                continue
            untrusted_role, trusted_role = one.roles[policy]
            if untrusted_role == wanted:
                parts.append(self.logic.all_of((one.literal, -trusted)))
            if trusted_role == wanted:
                parts.append(self.logic.all_of((one.literal, trusted)))
        return self.logic.any_of(parts)

    def _trusted(self, policy: int, name: str) -> int:
        apps = self.apps.items()
        known = self.policies[policy]
        return self.logic.any_of(lit for app, lit in apps if name in known.trusted(app))

    # -- reading an example ------------------------------------------------------------

    def read(self, example: frozenset[int]) -> Request:
        """The request of an example."""
        said = tuple(
            (one.attribute, one.value, one.source)
            for many in self.said.values()
            for one in many
            if one.literal in example
        )
        return Request(
            next(name for name, literal in self.tenants.items() if literal in example),
            next(name for name, literal in self.apps.items() if literal in example),
            next(name for name, literal in self.purposes.items() if literal in example),
            said,
            frozenset(name for name, literal in self.opened.items() if literal in example),
        )


def _mentioned(conditions: Iterable[Condition]) -> Mapping[str, frozenset[str]]:
    """The attributes that conditions ask about, with the values they ask for."""
    found: dict[str, set[str]] = {}
    for condition in conditions:
        for leaf in condition.leaves():
            if isinstance(leaf, Is):
                found.setdefault(leaf.attribute, set()).update(leaf.values)
    return {name: frozenset(values) for name, values in found.items()}
