"""The state file of vetoes, beside the log: what narrows now still narrows after a restart.

`DIR/<log id>/vetoes.json`, replaced whole and synced before a change is acknowledged. A file that
is there and can't be read stops the start: what it held is not known, so nothing may be served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

import orjson
from pydantic import Field, ValidationError

from router.audit.disk import Disk
from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.settings.config_types import Strict

NAME: Final = "vetoes.json"
What = Literal["endpoint", "place", "operator", "key"]
WHATS: Final[tuple[What, ...]] = get_args(What)
MAX_REASON: Final = 500


class VetoFileBroken(AuditError):
    """The state file can't be read, or can't be written."""


class Imposed(Strict):
    """One thing quarantined: by whom (a key's id, or `local`), and when, in epoch seconds.

    `called`: what an endpoint or a key is whatever its name, see `router.narrowing.called`.
    """

    what: What
    name: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)]
    by: str
    at: float
    called: tuple[str, ...] = ()


class Drift(Strict):
    """An endpoint found to run elsewhere; its footprint as `router.narrowing.drifted.shown` has it.

    `settled` says who accepted it when no compliance keys are configured; empty until then.
    """

    endpoint: str
    at: float
    process: list[str]
    retain: list[str]
    operate: list[str]
    settled: str = ""


class State(Strict):
    """Everything in the file."""

    format: Literal[1] = 1
    imposed: tuple[Imposed, ...] = ()
    drifts: tuple[Drift, ...] = ()


@dataclass(slots=True)
class VetoFile:
    """The file of one log."""

    path: Path
    disk: Disk
    state: State = field(default_factory=State)

    @classmethod
    def open(cls, folder: Path, log_id: str, disk: Disk) -> VetoFile:
        """Read what is in force; no file means nothing is.

        Raises:
            VetoFileBroken: the file is there and can't be read.
        """
        path = Folder(folder).log(log_id).path / NAME
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return cls(path, disk)
        except OSError as error:
            raise VetoFileBroken(f"can't read `{path}`: {error.strerror}") from error
        try:
            return cls(path, disk, State.model_validate(orjson.loads(data)))
        except (orjson.JSONDecodeError, ValidationError):
            raise VetoFileBroken(
                f"`{path}` is no list of vetoes, so what is quarantined is not known; restore it, "
                "or read the log's `veto` entries, remove it and quarantine again"
            ) from None

    def save(self, state: State) -> None:
        """Put a new state in force, durably.

        Raises:
            VetoFileBroken: it can't be written; the old state stands.
        """
        try:
            self.disk.replace(
                self.path, orjson.dumps(state.model_dump(), option=orjson.OPT_INDENT_2)
            )
        except OSError as error:
            raise VetoFileBroken(f"can't write `{self.path}`: {error.strerror}") from error
        self.state = state
