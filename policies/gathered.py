"""Everything that baseline and rule files say, gathered by name, before it has a meaning.

Keeps for every entry the document and path it stands at, refuses a name that stands in two
files, and what may widen in a file that may only narrow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pydantic import BaseModel

from policies.files import BaselineFile, RuleConfig, RuleFile
from policies.written import Errors
from regions.document import Document, DocumentError, DocumentErrors, Mark, Path, Tree, validate

_Model = TypeVar("_Model", bound=BaseModel)

SECTIONS: Final = (
    "regions",
    "apps",
    "tenants",
    "models",
    "endpoints",
    "attributes",
    "boundaries",
)
BASELINE_ONLY: Final = (*SECTIONS, "assert", "ensure")


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A file as it was read: its name (for messages) and its bytes."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what the file says, as a typed model or as written, and where."""

    document: Document
    path: Path
    value: object

    @property
    def mark(self) -> Mark:
        """Where its key or list item stands."""
        return self.document.key_mark(self.path)


@dataclass(slots=True)
class Gathered:
    """All entries by section and name; rules in file order.

    `unread`: baseline files that could not be read; what they define is not known.
    """

    sections: dict[str, dict[str, Entry]] = field(
        default_factory=lambda: {section: {} for section in SECTIONS}
    )
    rules: list[tuple[Entry, RuleConfig, bool]] = field(default_factory=list)
    asserts: list[Entry] = field(default_factory=list)
    ensures: list[Entry] = field(default_factory=list)
    unread: int = 0

    def digest(self, *more: str) -> str:
        """SHA-256 (hex) over the canonical content: layout, comments and order don't matter."""
        rules = {config.name: _tree(entry) for entry, config, _ in self.rules}
        content = {
            "sections": {
                section: {name: _tree(entry) for name, entry in entries.items()}
                for section, entries in self.sections.items()
            },
            "rules": rules,
            "baseline": sorted(config.name for _, config, baseline in self.rules if baseline),
            "assert": sorted(json.dumps(_tree(e), sort_keys=True) for e in self.asserts),
            "ensure": sorted(json.dumps(_tree(e), sort_keys=True) for e in self.ensures),
            "more": more,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def gather_files(
    baseline: Sequence[PolicyFile], rules: Sequence[PolicyFile], errors: Errors
) -> Gathered:
    """All entries of all files; what is wrong goes to `errors`."""
    gathered = Gathered(unread=len(baseline))
    for document in _documents(baseline, errors):
        model = _validated(document, BaselineFile, errors)
        if model is not None:
            gathered.unread -= 1
            _add_baseline(gathered, document, model, errors)
    for document in _documents(rules, errors):
        if _refuse_widening(document, errors):
            continue
        narrow = _validated(document, RuleFile, errors)
        if narrow is not None:
            _add_rules(gathered, document, narrow.rules, False, errors)
    return gathered


def _documents(files: Iterable[PolicyFile], errors: Errors) -> Iterator[Document]:
    for file in files:
        if not file.content.strip():
            # As a file is for a moment that is written anew: what it says must not be lost with it.
            message = "the file is empty; one without rules says `rules: []`"
            errors.found.append(DocumentError(Mark(file.name, 1, 1), message))
            continue
        try:
            yield Document.parse(file.content, file.name)
        except DocumentErrors as problem:
            errors.found.extend(problem.errors)


def _validated(document: Document, model: type[_Model], errors: Errors) -> _Model | None:
    try:
        return validate(document, model)
    except DocumentErrors as problem:
        errors.found.extend(problem.errors)
        return None


def _refuse_widening(document: Document, errors: Errors) -> bool:
    """A rule file may come and go, so nothing in it may widen."""
    tree = document.tree if isinstance(document.tree, dict) else {}
    wide = [key for key in tree if key in BASELINE_ONLY]
    for key in wide:
        message = f"`{key}` can widen what is allowed; move it to a baseline file"
        errors.found.append(DocumentError(document.key_mark((key,)), message))
    return bool(wide)


def _add_baseline(
    gathered: Gathered, document: Document, model: BaselineFile, errors: Errors
) -> None:
    for section in SECTIONS:
        entries: Mapping[str, object] = getattr(model, section)
        for name, value in entries.items():
            entry = Entry(document, (section, name), value)
            _add_named(gathered.sections[section], name, entry, errors)
    _add_rules(gathered, document, model.rules, True, errors)
    for n, value in enumerate(model.asserts):
        gathered.asserts.append(Entry(document, ("assert", n), value))
    for n, config in enumerate(model.ensure):
        gathered.ensures.append(Entry(document, ("ensure", n), config))


def _add_rules(
    gathered: Gathered,
    document: Document,
    rules: tuple[RuleConfig, ...],
    baseline: bool,
    errors: Errors,
) -> None:
    seen = {config.name: entry for entry, config, _ in gathered.rules}
    for n, config in enumerate(rules):
        entry = Entry(document, ("rules", n), config)
        before = seen.setdefault(config.name, entry)
        if before is not entry:
            message = f"rule `{config.name}` stands twice; the other is at {before.mark}"
            errors.add(document, ("rules", n, "name"), message)
        gathered.rules.append((entry, config, baseline))


def _add_named(entries: dict[str, Entry], name: str, entry: Entry, errors: Errors) -> None:
    before = entries.setdefault(name, entry)
    if before is not entry:
        message = f"`{name}` stands twice; the other is at {before.mark}"
        errors.found.append(entry.document.error(entry.path, message))


def _tree(entry: Entry) -> Tree:
    node: Tree = entry.document.tree
    for part in entry.path:
        node = node[part]  # type: ignore[index]  # an entry's path exists
    return node
