"""Whose signatures a baseline needs, kept beside the log: a start can't forget them.

A configuration without compliance keys, with others, or with fewer signatures needed, serves only
when those who had to sign before signed the baseline as it is now. The keys stand in the log's
snapshots as well, so that an auditor sees what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from policies.signatures import ComplianceKey, require_signed
from regions.document import DocumentErrors
from router.audit.disk import Disk
from router.audit.layout import Folder
from router.config import Config, ConfigError
from router.settings.handover import logs_of
from router.settings.loading import baseline_signatures, compliance_keys, read_files
from router.settings.signing import signed_files

NAME: Final = "authority.json"


@dataclass(frozen=True, slots=True)
class Authority:
    """Who had to sign what serves: `needed` of `keys`. Without keys nobody had to."""

    keys: tuple[ComplianceKey, ...] = ()
    needed: int = 1

    @classmethod
    def of(cls, config: Config, base: Path) -> Authority:
        """What a configuration asks for.

        Raises:
            ConfigError, ValueError: its keys can't be read.
        """
        section = config.policies
        return cls(tuple(compliance_keys(section, base)), section.signatures)

    def includes(self, other: Authority) -> bool:
        """Whether the other one asks for as much of the same keys."""
        mine, theirs = {k.id for k in self.keys}, {k.id for k in other.keys}
        return mine == theirs and other.needed >= self.needed

    def forbids(self, config: Config, base: Path) -> str | None:
        """Why a configuration may not serve after this authority; `None`: it may."""
        try:
            if not self.keys or self.includes(Authority.of(config, base)):
                return None
            baseline = read_files(config.policies.baseline, base)
            files, signatures = signed_files(baseline, base), baseline_signatures(baseline, base)
            require_signed(files, signatures, self.keys, self.needed)
        except (ConfigError, DocumentErrors, ValueError) as error:
            return f"the compliance keys change, so the old ones must sign too: {error}"
        return None

    def written(self) -> Mapping[str, object]:
        """As it is kept: public keys in base64."""
        return {"keys": [key.text for key in self.keys], "needed": self.needed}


@dataclass(slots=True)
class AuthorityFile:
    """What is kept beside one log."""

    path: Path
    disk: Disk

    @classmethod
    def of(cls, folder: Path, log_id: str, disk: Disk) -> AuthorityFile:
        """The file of one log; it need not be there."""
        return cls(Folder(folder).log(log_id).path / NAME, disk)

    def read(self) -> Authority:
        """What was in force; nobody's signature without a file.

        Raises:
            ConfigError: the file is there and can't be read.
        """
        try:
            found = orjson.loads(self.path.read_bytes())
            keys = tuple(ComplianceKey.read(one.encode()) for one in found["keys"])
            return Authority(keys, int(found["needed"]))
        except FileNotFoundError:
            return Authority()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(
                f"`{self.path}` can't be read, so whose signatures a baseline needs is not known; "
                "restore it from the log's newest `snapshot` entry"
            ) from None

    def keep(self, authority: Authority) -> None:
        """Put an authority in force, durably.

        Raises:
            ConfigError: it can't be written.
        """
        try:
            self.disk.replace(self.path, orjson.dumps(authority.written()))
        except OSError as error:
            raise ConfigError(f"can't write `{self.path}`: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class Beside:
    """What is kept beside all logs of one router: another number of workers, each of which writes
    a log of its own, must not forget whose signatures were needed."""

    files: Sequence[AuthorityFile]

    @classmethod
    def of(cls, folder: Path, router: str, used: Sequence[str], disk: Disk) -> Beside:
        """Of a router's logs in a folder, those in `used` among them, that may not be there yet."""
        names = dict.fromkeys((*used, *logs_of(folder, router)))
        return cls([AuthorityFile.of(folder, name, disk) for name in names])

    def uphold(self, config: Config, base: Path) -> None:
        """At a start: the configuration may serve, and what it asks for is in force from now.

        Raises:
            ConfigError: those who had to sign before did not, or it can't be read or kept.
        """
        for file in self.files:
            why = file.read().forbids(config, base)
            if why is not None:
                raise ConfigError(why)
        self.keep(Authority.of(config, base))

    def keep(self, authority: Authority) -> None:
        """Put an authority in force for every log, durably.

        Raises:
            ConfigError: it can't be written.
        """
        for file in self.files:
            file.keep(authority)
