"""Rules, match tables and assertions: from entries to `Rule`, `Statement` and `Ensure`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from policies.attributes import BUILT_IN, Declaration, nearest
from policies.conditions import ALWAYS, AllOf, Condition, Is
from policies.duties import KNOWN_ASSURANCES, read_obligations
from policies.files import EnsureConfig, RuleConfig
from policies.gathered import Entry, Gathered
from policies.model import App, Model, Prefer, Rule, Tenant
from policies.obligations import AnyObligation
from policies.parts import Parts
from policies.statements import Ensure, Statement
from policies.timed import Timed
from policies.written import Errors, Refused, Vocabulary
from regions.countries import Countries
from regions.document import Path
from regions.model import Endpoint, Tier
from regions.places import Boundary

PURPOSES: Final = frozenset({"interactive", "batch", "shadow", "probe"})
EFFECTS: Final = (
    "process_within",
    "retain_within",
    "operated_by",
    "require",
    "obligations",
    "prefer",
    "because",
)
_OUTSIDE: Final = ("processed_outside", "retained_outside", "operated_outside")
_WITHIN: Final = ("processed_within", "retained_within", "operated_by")


class Rules:
    """Reads what every rule means; what is wrong goes to `errors`."""

    def __init__(
        self,
        gathered: Gathered,
        parts: Parts,
        errors: Errors,
        declared: Mapping[str, Declaration],
        tenants: Mapping[str, Tenant],
        apps: Mapping[str, App],
        endpoints: Mapping[str, Endpoint],
        models: Mapping[str, Model],
    ) -> None:
        self._gathered = gathered
        self._parts = parts
        self._errors = errors
        self._declared = declared
        self._models = models
        self.atlas = parts.atlas
        held = {a.name for e in endpoints.values() for a in e.assurances}
        self._assurances = KNOWN_ASSURANCES | held
        providers = {p.provider for p in parts.atlas.partitions}
        self._vocabulary = Vocabulary(
            declared,
            {
                "tenant": frozenset(tenants),
                "app": frozenset(apps),
                "purpose": PURPOSES,
                "tier": frozenset(t.label for t in Tier),
                "provider": frozenset(providers | {e.provider for e in endpoints.values()}),
                "served_model": frozenset(e.model for e in endpoints.values()),
            },
        )

    def rules(self) -> tuple[Rule, ...]:
        """Every rule, match tables expanded into one per row."""
        found: list[Rule] = []
        for entry, config, baseline in self._gathered.rules:
            made = self._parts.attempt(
                entry,
                lambda e=entry, c=config, b=baseline: list(self._rule(e, c, b)),  # type: ignore[misc]
            )
            found.extend(made or ())
        return tuple(found)

    def _rule(self, entry: Entry, config: RuleConfig, baseline: bool) -> Iterator[Rule]:
        condition = self._vocabulary.rule_condition(config.when, config.unless, entry.path)
        written = {
            key: getattr(config, key) for key in EFFECTS if getattr(config, key) not in (None, ())
        }
        bare = Rule(
            config.name,
            condition,
            review_by=config.review_by,
            dry_run_until=_dry_run(config, entry.path),
            mark=entry.mark,
            baseline=baseline,
        )
        if config.match is None:
            if not written.keys() - {"because"}:
                raise Refused(entry.path, f"rule `{config.name}` does nothing; give it an effect")
            yield self._with_effects(bare, written, entry.path)
            return
        for row, is_row, effects, at in self._rows(config.match, (*entry.path, "match")):
            both = is_row if condition == ALWAYS else AllOf((condition, is_row))
            one = replace(bare, condition=both, row=row)
            yield self._with_effects(one, {**written, **effects}, at)

    # -- match tables ------------------------------------------------------------------

    def _rows(
        self, written: object, path: Path
    ) -> Iterator[tuple[str, Condition, Mapping[str, object], Path]]:
        """Row name, its condition, its effects and where they stand."""
        attribute, rows, otherwise = self._table(written, path)
        declared = self._values(attribute, path)
        covered: frozenset[str] = frozenset()
        for row, effects in rows.items():
            at = (*path, attribute, row)
            values = self._row_values(attribute, row, declared, at)
            covered |= values
            yield row, Is(attribute, values), _row_effects(effects, at), at
        rest = declared - covered
        if rest and otherwise is None:
            missing = ", ".join(sorted(rest)[:8])
            raise Refused(
                path, f"`match` covers no {missing}; add rows or `otherwise:` for what remains"
            )
        if rest and otherwise is not None:
            at = (*path, "otherwise")
            # A positive list, not a `not`: so a claimable attribute may be matched as well.
            yield "otherwise", Is(attribute, rest), _row_effects(otherwise, at), at

    def _table(
        self, written: object, path: Path
    ) -> tuple[str, Mapping[str, object], object | None]:
        if not isinstance(written, dict):
            raise Refused(path, "`match` is `{ATTRIBUTE: {VALUE: …}, otherwise: …}`")
        names = [key for key in written if key != "otherwise"]
        rows = written.get(names[0]) if len(names) == 1 else None
        if not isinstance(rows, dict) or not rows:
            raise Refused(path, "`match` needs exactly one attribute with a row for each value")
        return names[0], rows, written.get("otherwise")

    def _values(self, attribute: str, path: Path) -> frozenset[str]:
        if attribute in self._declared:
            return self._declared[attribute].values
        if attribute in BUILT_IN:
            return self._vocabulary.known[attribute]
        hint = nearest(attribute, {*self._declared, *BUILT_IN})
        raise Refused((*path, attribute), f"attribute `{attribute}` is not declared{hint}")

    def _row_values(
        self, attribute: str, row: str, declared: frozenset[str], path: Path
    ) -> frozenset[str]:
        if row in declared:
            return frozenset({row})
        known = self._declared.get(attribute)
        if known is not None and known.format == "country" and row in self.atlas.jurisdictions:
            return self.atlas.jurisdictions[row]
        hint = nearest(row, declared)
        raise Refused(path, f"`{attribute}` has no value `{row}`{hint}")

    # -- effects -----------------------------------------------------------------------

    def _with_effects(self, rule: Rule, written: Mapping[str, object], path: Path) -> Rule:
        for key in written:
            if key not in EFFECTS:
                raise Refused((*path, key), f"unknown effect `{key}`{nearest(key, EFFECTS)}")
        return replace(
            rule,
            process=self._places(written, "process_within", path),
            retain=self._places(written, "retain_within", path),
            operate=self._countries(written, "operated_by", path),
            require=self._required(written.get("require"), path),
            obligations=self._obligations(written, path),
            prefer=self._prefer(written.get("prefer"), (*path, "prefer")),
            because=str(written.get("because", "")),
        )

    def _places(
        self, written: Mapping[str, object], key: str, path: Path
    ) -> Timed[Boundary] | None:
        if written.get(key) is None:
            return None
        return self._parts.places.read(written[key], (*path, key))

    def _countries(
        self, written: Mapping[str, object], key: str, path: Path
    ) -> Timed[Countries] | None:
        if written.get(key) is None:
            return None
        return self._parts.countries.read(written[key], (*path, key))

    def _required(self, written: object, path: Path) -> frozenset[str]:
        names = written if isinstance(written, list | tuple) else [written] if written else []
        for name in names:
            base = str(name).partition(":")[0]
            if name not in self._assurances and base != "project_residency":
                hint = nearest(str(name), self._assurances)
                raise Refused((*path, "require"), f"assurance `{name}` is not known{hint}")
        return frozenset(str(name) for name in names)

    def _obligations(self, written: Mapping[str, object], path: Path) -> tuple[AnyObligation, ...]:
        if written.get("obligations") is None:
            return ()
        return read_obligations(written["obligations"], (*path, "obligations"))

    def _prefer(self, written: object, path: Path) -> Prefer | None:
        if written is None:
            return None
        spill = False
        if isinstance(written, dict):
            spill, written = _spill(written, path)
            path = (*path, "sets")
        if not isinstance(written, list) or not written:
            raise Refused(path, "`prefer` is an ordered list of boundaries, as `[CH, EU]`")
        sets = tuple(self._parts.places.read(one, (*path, n)) for n, one in enumerate(written))
        for n, one in enumerate(sets):
            if one.ends:
                raise Refused(
                    (*path, n),
                    "`prefer` only orders what is allowed, so it has no `until`; bound it with "
                    "`process_within`",
                )
        return Prefer(tuple(one.values[0] for one in sets), spill)

    # -- assertions --------------------------------------------------------------------

    def statements(self) -> tuple[Statement, ...]:
        """Every `assert`."""
        found = []
        for entry in self._gathered.asserts:
            made = self._parts.attempt(entry, lambda e=entry: self._statement(e))  # type: ignore[misc]
            if made is not None:
                found.append(made)
        return tuple(found)

    def _statement(self, entry: Entry) -> Statement:
        value = entry.value
        kind = next(iter(value), "") if isinstance(value, dict) and len(value) == 1 else ""
        body = value.get(kind) if isinstance(value, dict) else None
        if kind not in ("never", "only") or not isinstance(body, dict):
            raise Refused(entry.path, "an assertion is `never: {…}` or `only: {…}`")
        path = (*entry.path, kind)
        axes = _OUTSIDE if kind == "never" else _WITHIN
        condition = {key: one for key, one in body.items() if key not in (*_OUTSIDE, *_WITHIN)}
        if not any(key in body for key in axes):
            raise Refused(path, f"`{kind}` needs one of {', '.join(axes)}")
        for key in body:
            if key in (*_OUTSIDE, *_WITHIN) and key not in axes:
                raise Refused((*path, key), f"`{kind}` takes {', '.join(axes)}")
        return Statement(
            self._vocabulary.read(condition, path) if condition else ALWAYS,
            self._places(body, axes[0], path),
            self._places(body, axes[1], path),
            self._countries(body, axes[2], path),
            f"{kind}: " + ", ".join(f"{key}: {_told(one)}" for key, one in body.items()),
            entry.mark,
        )

    def ensures(self) -> tuple[Ensure, ...]:
        """Every `ensure`."""
        found = []
        for entry in self._gathered.ensures:
            made = self._parts.attempt(entry, lambda e=entry: self._ensure(e))  # type: ignore[misc]
            if made is not None:
                found.append(made)
        return tuple(found)

    def _ensure(self, entry: Entry) -> Ensure:
        config = entry.value
        if not isinstance(config, EnsureConfig):
            raise Refused(entry.path, "an availability statement is `{for: …, survives: …}`")
        for model in config.models:
            if model not in self._models:
                hint = nearest(model, self._models)
                raise Refused((*entry.path, "models"), f"model `{model}` is not defined{hint}")
        condition: Condition = ALWAYS
        if config.condition is not None:
            condition = self._vocabulary.read(config.condition, (*entry.path, "for"))
        return Ensure(
            condition,
            config.survives,
            config.least,
            config.horizon,
            frozenset(config.models),
            f"survives {config.survives} for {condition.describe()}",
            entry.mark,
        )


def _dry_run(config: RuleConfig, path: Path) -> float | None:
    if config.dry_run is None:
        if config.until is not None:
            raise Refused(
                (*path, "until"),
                "a rule has no `until`: it would widen when it ends; use `review_by`, or put the "
                "`until` on a boundary's member",
            )
        return None
    if config.dry_run == "true":
        if config.until is None:
            raise Refused((*path, "dry_run"), "a trial has an end; write `dry_run: {until: …}`")
        return config.until
    return config.dry_run.until


def _row_effects(written: object, path: Path) -> Mapping[str, object]:
    """A row's effects; a text or a list is its `process_within`."""
    if isinstance(written, str | list):
        return {"process_within": written}
    if isinstance(written, dict) and written:
        return written
    raise Refused(path, "a row is a boundary or the effects of a rule")


def _spill(written: Mapping[str, object], path: Path) -> tuple[bool, object]:
    for key in written:
        if key not in ("sets", "spill"):
            raise Refused((*path, key), f"`{key}` is not expected here; known: sets, spill")
    spill = written.get("spill", "false")
    if spill not in ("true", "false"):
        raise Refused((*path, "spill"), "`spill` is true or false")
    return spill == "true", written.get("sets")


def _told(written: object) -> str:
    """What was written, as on one line of YAML."""
    if isinstance(written, list):
        return f"[{', '.join(_told(one) for one in written)}]"
    if isinstance(written, dict):
        return f"{{{', '.join(f'{key}: {_told(one)}' for key, one in written.items())}}}"
    return str(written)
