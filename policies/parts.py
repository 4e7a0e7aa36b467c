"""Everything in baseline files but rules: from entries to attributes, boundaries, tenants, …"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from policies.attributes import (
    BUILT_IN,
    CANDIDATE,
    CLASSIFIER,
    EVERYONE,
    FORMATS,
    WORDS,
    Declaration,
    nearest,
)
from policies.disaggregated import halves, with_prefill
from policies.endpoints import endpoint_from, one_server_in_two_places
from policies.files import (
    AppConfig,
    AttributeConfig,
    EndpointConfig,
    GrantConfig,
    HedgeConfig,
    LimitsConfig,
    ModelConfig,
    TenantConfig,
)
from policies.gathered import Entry, Gathered
from policies.grading import grading_from, highest
from policies.model import App, Grading, Grant, Hedge, Limits, Model, Priority, Rate, Tenant
from policies.timed import Timed, always, ending
from policies.written import Errors, Refused, Sets, country_sets, place_sets
from regions.atlas import Atlas
from regions.boundaries import is_reserved
from regions.countries import Countries
from regions.document import Path
from regions.model import Endpoint, Tier
from regions.places import Boundary

T = TypeVar("T")

_SIGNS: Final = re.compile(r"[()+&]")
TAKEN: Final = BUILT_IN | CANDIDATE | WORDS


class Parts:
    """Reads the sections of the baseline; what is wrong goes to `errors`."""

    def __init__(self, gathered: Gathered, atlas: Atlas, errors: Errors) -> None:
        self._sections = gathered.sections
        self.atlas = atlas
        self._errors = errors
        self._places: dict[str, Timed[Boundary]] = {}
        self._countries: dict[str, Timed[Countries]] = {}
        self.places: Sets[Boundary] = place_sets(atlas, self._places)
        self.countries: Sets[Countries] = country_sets(atlas, self._countries)

    def attempt(self, entry: Entry, build: Callable[[], T]) -> T | None:
        """What `build` gives; `None`, with the error noted, when it refuses."""
        try:
            return build()
        except Refused as problem:
            self._errors.add(entry.document, problem.path, problem.message)
            return None

    def fail(self, entry: Entry, message: str, *more: str | int) -> None:
        """Note an error below an entry."""
        self._errors.add(entry.document, (*entry.path, *more), message)

    # -- attributes --------------------------------------------------------------------

    def declared(self) -> Mapping[str, Declaration]:
        """Declared attributes, and those that only tenant and app records carry."""
        result: dict[str, Declaration] = {}
        for name, entry in self._sections["attributes"].items():
            config = entry.value
            if isinstance(config, AttributeConfig):
                result[name] = self._declaration(name, entry, config)
        for section in ("tenants", "apps"):
            for entry in self._sections[section].values():
                self._declare_carried(entry, section, result)
        return result

    def _declaration(self, name: str, entry: Entry, config: AttributeConfig) -> Declaration:
        if name in TAKEN:
            self.fail(entry, f"attribute `{name}` is built in; choose another name")
        values = FORMATS[config.format] if config.format else frozenset(config.values)
        if bool(config.format) == bool(config.values):
            self.fail(entry, f"attribute `{name}` needs either `values` or a `format`")
        for value in config.default:
            if value not in values:
                hint = nearest(value, values)
                self.fail(entry, f"default `{value}` is not a value{hint}", "default")
        sources = EVERYONE if config.sources is None else frozenset(config.sources)
        for source in sources - EVERYONE:
            if not source.startswith(CLASSIFIER) or source == CLASSIFIER:
                hint = nearest(source, {*EVERYONE, "classifier:NAME"})
                message = f"`{source}` is no source{hint}"
                self.fail(entry, message, "from")
        return Declaration(name, values, frozenset(config.default), sources, config.format)

    def _declare_carried(self, entry: Entry, section: str, result: dict[str, Declaration]) -> None:
        """A record's undeclared attribute is declared by it: only such records supply it."""
        config = entry.value
        source = "tenant" if section == "tenants" else "app"
        carried = config.attributes if isinstance(config, TenantConfig | AppConfig) else {}
        for name, values in carried.items():
            before = result.get(name)
            explicit = name in self._sections["attributes"]
            if before is not None and explicit:
                self._check_carried(entry, source, before, values)
                continue
            hint = nearest(name, self._sections["attributes"])
            if name in TAKEN or "did you mean" in hint:
                self.fail(entry, f"attribute `{name}` is not declared{hint}", "attributes", name)
                continue
            known = before.values if before is not None else frozenset()
            sources = before.sources if before is not None else frozenset()
            result[name] = Declaration(name, known | set(values), sources=sources | {source})

    def _check_carried(
        self, entry: Entry, source: str, declared: Declaration, values: tuple[str, ...]
    ) -> None:
        at = ("attributes", declared.name)
        if source not in declared.sources:
            self.fail(entry, f"`{declared.name}` can't come from `{source}`; see its `from`", *at)
        for value in values:
            if value not in declared.values:
                hint = nearest(value, declared.values)
                self.fail(entry, f"`{declared.name}` has no value `{value}`{hint}", *at)

    # -- boundaries --------------------------------------------------------------------

    def boundaries(
        self,
    ) -> tuple[Mapping[str, Timed[Boundary]], Mapping[str, Timed[Countries]]]:
        """The named boundaries as places and, where they speak of countries, as those."""
        waiting = dict(self._sections["boundaries"])
        for name, entry in list(waiting.items()):
            if is_reserved(name, self.atlas):
                self.fail(entry, f"`{name}` is a built-in word; choose another name")
                del waiting[name]
        named = {name: _names(entry.value) & waiting.keys() for name, entry in waiting.items()}
        while waiting:
            ready = [name for name in waiting if named[name].isdisjoint(waiting)]
            if not ready:
                self._fail_cycle(waiting)
                break
            for name in ready:
                self._boundary(name, waiting.pop(name))
        return self._places, self._countries

    def _boundary(self, name: str, entry: Entry) -> None:
        countries = _readable(lambda: self.countries.read(entry.value, entry.path))
        if countries is not None:
            self._countries[name] = countries  # else it names places: not for `operate`
        places = _readable(lambda: self.places.read(entry.value, entry.path))
        if places is not None:
            self._places[name] = places
        elif countries is None:
            self.attempt(entry, lambda: self.places.read(entry.value, entry.path))
            # Its users get no second error: it stands for nowhere while errors are collected.
            self._places[name] = always(self.atlas.nowhere())
            self._countries[name] = always(Countries(0))

    def _fail_cycle(self, waiting: Mapping[str, Entry]) -> None:
        for name, entry in waiting.items():
            self.fail(entry, f"boundary `{name}` is defined by itself: {', '.join(waiting)}")
            self._places[name] = always(self.atlas.nowhere())
            self._countries[name] = always(Countries(0))

    # -- endpoints and models ----------------------------------------------------------

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Every endpoint by name."""
        result: dict[str, Endpoint] = {}
        for name, entry in self._sections["endpoints"].items():
            config = entry.value
            if isinstance(config, EndpointConfig):
                built = self.attempt(
                    entry,
                    lambda n=name, c=config, e=entry: endpoint_from(  # type: ignore[misc]
                        n, c, e.path, self.atlas, e.mark
                    ),
                )
                if built is not None:
                    result[name] = built

        def fail(name: str, key: str, message: str) -> None:
            self.fail(self._sections["endpoints"][name], message, key)

        for name, message in one_server_in_two_places(result.values()):
            fail(name, "region", message)
        return with_prefill(result, fail)

    def models(self, endpoints: Mapping[str, Endpoint]) -> Mapping[str, Model]:
        """Every public model; its endpoints exist."""
        known = self._sections["endpoints"]
        prefilling = halves(endpoints)
        result: dict[str, Model] = {}
        for name, entry in self._sections["models"].items():
            config = entry.value
            if not isinstance(config, ModelConfig):
                continue
            tiers: dict[Tier, tuple[str, ...]] = {}
            for tier, names in config.tiers.items():
                tiers[Tier.named(tier)] = names
                if not names:
                    message = f"tier `{tier}` of model `{name}` has no endpoint; remove it"
                    self.fail(entry, message, "tiers", tier)
                for endpoint in names:
                    if endpoint not in known:
                        hint = nearest(endpoint, known)
                        message = f"endpoint `{endpoint}` is not defined{hint}"
                        self.fail(entry, message, "tiers", tier)
                    elif endpoint in prefilling:
                        message = f"endpoint `{endpoint}` computes another one's prompts; list that"
                        self.fail(entry, message, "tiers", tier)
                for endpoint in {one for one in names if names.count(one) > 1}:
                    self.fail(entry, f"endpoint `{endpoint}` stands twice", "tiers", tier)
                others = {one for at, of in config.tiers.items() if at < tier for one in of}
                for endpoint in others.intersection(names):
                    message = f"endpoint `{endpoint}` is of another tier too; leave it in one"
                    self.fail(entry, message, "tiers", tier)
            if not tiers:
                self.fail(entry, f"model `{name}` has no endpoint", "tiers")
            grading = self._grading(entry, config)
            result[name] = Model(
                name, tiers, config.grade, entry.mark, grading, _hedge(config.hedge),
                config.timeouts.first_token, config.timeouts.answer, config.timeouts.idle,
            )  # fmt: skip
        return result

    def _grading(self, entry: Entry, config: ModelConfig) -> Grading:
        known = {
            name: one.value
            for name, one in self._sections["endpoints"].items()
            if isinstance(one.value, EndpointConfig)
        }

        def fail(key: str, message: str) -> None:
            self.fail(entry, message, "grading", *([key] if key else []))

        models = {
            name: highest(one.value)
            for name, one in self._sections["models"].items()
            if isinstance(one.value, ModelConfig)
        }
        return grading_from(config, known, models, fail)

    # -- apps and tenants --------------------------------------------------------------

    def apps(self, declared: Mapping[str, Declaration]) -> Mapping[str, App]:
        """Every app; it is trusted only for attributes that may come from an app."""
        result: dict[str, App] = {}
        for name, entry in self._sections["apps"].items():
            config = entry.value
            if not isinstance(config, AppConfig):
                continue
            for trusted in config.trusted:
                known = declared.get(trusted)
                if known is None:
                    hint = nearest(trusted, declared)
                    self.fail(entry, f"attribute `{trusted}` is not declared{hint}", "trusted")
                elif "app" not in known.sources:
                    message = f"`{trusted}` can't come from an app; add `app` to its `from`"
                    self.fail(entry, message, "trusted")
            carried = {n: frozenset(v) for n, v in config.attributes.items()}
            result[name] = App(
                name, frozenset(config.trusted), carried, entry.mark, _priority(config.priority),
                limits_from(config.limits),
            )  # fmt: skip
        return result

    def tenants(
        self, declared: Mapping[str, Declaration], models: Mapping[str, Model]
    ) -> Mapping[str, Tenant]:
        """Every tenant with its grant."""
        result: dict[str, Tenant] = {}
        for name, entry in self._sections["tenants"].items():
            config = entry.value
            if not isinstance(config, TenantConfig):
                continue
            for model in config.models or ():
                if model not in models:
                    hint = nearest(model, models)
                    self.fail(entry, f"model `{model}` is not defined{hint}", "models")
            grant = self._grant(entry, config.grant) if config.grant is not None else None
            result[name] = Tenant(
                name,
                grant,
                {n: frozenset(v) for n, v in config.attributes.items()},
                None if config.models is None else frozenset(config.models),
                limits_from(config.limits),
                config.weight,
                entry.mark,
                config.shadow,
                _priority(config.priority),
            )
        return result

    def _grant(self, entry: Entry, config: GrantConfig) -> Grant | None:
        at: Path = (*entry.path, "grant")
        read = self.places.read
        process = self.attempt(entry, lambda: read(config.process, (*at, "process")))
        retain = process
        if config.retain is not None:
            retain = self.attempt(entry, lambda: read(config.retain, (*at, "retain")))
        operate: Timed[Countries] | None = always(Countries.any())
        if config.operate is not None:
            operate = self.attempt(
                entry, lambda: self.countries.read(config.operate, (*at, "operate"))
            )
        if process is None or retain is None or operate is None:
            return None
        if config.until is None:
            return Grant(process, retain, operate)
        nowhere = self.atlas.nowhere()
        return Grant(
            process & ending(process.values[0], config.until, nowhere),
            retain & ending(retain.values[0], config.until, nowhere),
            operate & ending(operate.values[0], config.until, Countries(0)),
        )


def _readable(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Refused:
        return None


def _priority(written: str | None) -> Priority | None:
    return None if written is None else Priority.named(written)


def limits_from(config: LimitsConfig) -> Limits:
    """Limits as they are written."""
    return Limits(
        Rate(*config.requests) if config.requests else None,
        Rate(*config.tokens) if config.tokens else None,
        config.concurrency,
        Rate(*config.dollars) if config.dollars else None,
    )


def _names(written: object) -> frozenset[str]:
    """Every word in what is written: more than the names in it, never fewer."""
    return frozenset(_words_of(written))


def _words_of(written: object) -> Iterator[str]:
    if isinstance(written, str):
        yield from (word.lstrip("-") for word in _SIGNS.sub(" ", written).split())
    elif isinstance(written, list):
        for item in written:
            yield from _words_of(item)
    elif isinstance(written, dict):
        for item in written.values():
            yield from _words_of(item)


def _hedge(config: HedgeConfig | None) -> Hedge | None:
    if config is None:
        return None
    return Hedge(None if config.after == "p95" else float(config.after), config.at_most)
