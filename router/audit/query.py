"""Questions about a log: DuckDB over its segments, or over Parquet files exported before.

Both are streamed: rows go into the question in batches, and answers come out in batches. Segments
cost their parsing (Python), Parquet only what the question touches, so who asks often exports
first. DuckDB and pyarrow are the optional extra `reports`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.audit.rows import Progress, Row, rows

BATCH: Final = 8192
NAMES: Final = tuple(field.name for field in fields(Row))
LISTS: Final = frozenset(f.name for f in fields(Row) if f.type == tuple[str, ...])
WHOLE: Final = frozenset(f.name for f in fields(Row) if f.type is int)
_LOW: Final = frozenset({"attributes", "rules", "tenant", "policy", "model", "kind", "outcome"})


class QueryUnavailable(AuditError):
    """The libraries for it aren't installed; the message says what to install."""


class QueryRefused(AuditError):
    """A question that can't be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which requests: all that are given must hold. Times are microseconds since 1970.

    `attributes` are `name=value`, all of them; `by` counts requests by these columns instead of
    listing them; `limit` is the most rows, 0 for all.
    """

    since: int | None = None
    until: int | None = None
    tenant: str | None = None
    app: str | None = None
    attributes: tuple[str, ...] = ()
    place: str | None = None
    rule: str | None = None
    outcome: str | None = None
    endpoint: str | None = None
    request: str | None = None
    by: tuple[str, ...] = ()
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """An answer: its columns, and its rows in batches, each a list of rows."""

    columns: tuple[str, ...]
    batches: Iterator[list[tuple[object, ...]]]


def statement(question: Question, source: str) -> tuple[str, list[object]]:
    """The SQL of a question and its parameters; only closed names become part of the text.

    Raises:
        QueryRefused: `by` names no column.
    """
    for name in question.by:
        if name not in NAMES:
            raise QueryRefused(f"`{name}` is no column; there are: {', '.join(NAMES)}")
    conditions, values = _conditions(question)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    limit = f" LIMIT {int(question.limit)}" if question.limit else ""
    if not question.by:
        return f"SELECT {', '.join(NAMES)} FROM {source}{where}{limit}", values  # noqa: S608
    # A request of two attributes counts once for each value, as its columns say.
    picked = [f"unnest({n}) AS {n}" if n in LISTS else n for n in question.by]
    names = ", ".join(question.by)
    inner = f"SELECT {', '.join(picked)} FROM {source}{where}"  # noqa: S608
    outer = f"SELECT {names}, count(*) AS requests FROM ({inner}) GROUP BY {names}"  # noqa: S608
    return f"{outer} ORDER BY requests DESC, {names}{limit}", values


def _conditions(question: Question) -> tuple[list[str], list[object]]:
    asked: list[tuple[str, object]] = [
        ("time >= ?", question.since),
        ("time < ?", question.until),
        ("tenant = ?", question.tenant),
        ("app = ?", question.app),
        ("list_contains(places, ?)", question.place),
        ("list_contains(rules, ?)", question.rule),
        ("outcome = ?", question.outcome),
        ("endpoint = ?", question.endpoint),
        ("request = ?", question.request),
        *(("list_contains(attributes, ?)", one) for one in question.attributes),
    ]
    given = [(text, value) for text, value in asked if value is not None]
    return [text for text, _ in given], [value for _, value in given]


def ask(path: Path, question: Question, progress: Progress = lambda _: None) -> Table:
    """Ask a folder of logs, a Parquet file, or a folder of Parquet files.

    Raises:
        QueryUnavailable, QueryRefused. LineInvalid, while rows are read.
    """
    files = parquet_files(path)
    if not files and Folder(path).log_ids():
        return ask_rows(rows(Folder(path), progress), question)
    if not files:
        raise QueryRefused(f"`{path}` holds neither a log nor Parquet files")
    duckdb = _library("duckdb")
    connection = duckdb.connect(":memory:")
    connection.execute("SET preserve_insertion_order = false")
    source = f"read_parquet([{', '.join(_quoted(one) for one in files)}])"
    try:
        return _answer(connection, *statement(question, source))
    except duckdb.Error as error:
        said = str(error).partition("\n")[0]
        raise QueryRefused(f"`{path}` is not what `audit export` wrote: {said}") from None


def ask_rows(found: Iterable[Row], question: Question) -> Table:
    """Ask rows from elsewhere. Raises as `ask` does."""
    duckdb, arrow = _library("duckdb"), _library("pyarrow")
    connection, rows_read = duckdb.connect(":memory:"), _Remembering(found)
    connection.register("log", _reader(arrow, rows_read))
    with rows_read.own_words(duckdb.Error):
        table = _answer(connection, *statement(question, "log"))

    def batches() -> Iterator[list[tuple[object, ...]]]:
        with rows_read.own_words(duckdb.Error):
            yield from table.batches

    return Table(table.columns, batches())


class _Remembering:
    """Rows, and the error they ended with: DuckDB would tell it with a traceback in its message."""

    def __init__(self, found: Iterable[Row]) -> None:
        self._found = found
        self._error: AuditError | OSError | None = None

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._found
        except (AuditError, OSError) as error:
            self._error = error
            raise

    @contextmanager
    def own_words(self, kind: type[Exception]) -> Iterator[None]:
        """Raise the error that rows ended with instead of what was made of it."""
        try:
            yield
        except kind:
            if self._error is not None:
                raise self._error from None
            raise


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files that a path names: itself, or those in a folder."""
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return sorted(path.glob("*.parquet"))


def export(
    source: Path,
    target: Path,
    progress: Progress = lambda _: None,
    tenant: str | None = None,
) -> int:
    """Write every request of a folder of logs, or those of one tenant, to a Parquet file, in
    batches. Gives their number.

    Raises:
        QueryUnavailable. LineInvalid: nothing is left at `target` then.
    """
    found = rows(Folder(source), progress)
    return write_rows((one for one in found if tenant in (None, one.tenant)), target)


def write_rows(found: Iterable[Row], target: Path) -> int:
    """Write rows to a Parquet file, in batches. Gives their number. Raises QueryUnavailable."""
    arrow = _library("pyarrow")
    batches = _batches(arrow, found, 16 * BATCH)
    return _written(arrow, target, _schema(arrow), batches, use_dictionary=sorted(_LOW))


def write_parquet(table: Table, target: Path) -> int:
    """Write an answer to a Parquet file, in batches. Gives the number of its rows."""
    arrow = _library("pyarrow")
    counted = "requests" in table.columns  # then a column of lists was taken apart
    kinds = [
        arrow.string() if counted and name in LISTS else _kind(arrow, name)
        for name in table.columns
    ]
    schema = arrow.schema(list(zip(table.columns, kinds, strict=True)))
    batches = (_batch(arrow, schema, batch) for batch in table.batches)
    return _written(arrow, target, schema, batches)


def _written(
    arrow: ModuleType, target: Path, schema: Any, batches: Iterable[Any], **options: object
) -> int:
    _library("pyarrow.parquet")
    count = 0
    with drafted(target) as draft:
        write = arrow.parquet.ParquetWriter(draft, schema, compression="zstd", **options)
        with write as writer:
            for batch in batches:
                writer.write_batch(batch)
                count += batch.num_rows
    return count


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """A draft beside a file: it takes the file's name when all is written, and goes otherwise."""
    draft = target.with_name(f".{target.name}.draft")
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _answer(connection: Any, text: str, values: Sequence[object]) -> Table:
    reader = connection.sql(text, params=list(values)).to_arrow_reader(BATCH)

    def batches() -> Iterator[list[tuple[object, ...]]]:
        for batch in reader:
            columns = [column.to_pylist() for column in batch.columns]
            yield list(zip(*columns, strict=True))

    return Table(tuple(reader.schema.names), batches())


def _schema(arrow: ModuleType) -> Any:
    return arrow.schema([(name, _kind(arrow, name)) for name in NAMES])


def _kind(arrow: ModuleType, name: str) -> Any:
    if name in WHOLE or name == "requests":
        return arrow.int64()
    return arrow.list_(arrow.string()) if name in LISTS else arrow.string()


def _reader(arrow: ModuleType, found: Iterable[Row]) -> Any:
    return arrow.RecordBatchReader.from_batches(_schema(arrow), _batches(arrow, found, BATCH))


def _batches(arrow: ModuleType, found: Iterable[Row], size: int) -> Iterator[Any]:
    schema, left = _schema(arrow), iter(found)
    values = attrgetter(*NAMES)
    while taken := [values(row) for row in islice(left, size)]:
        yield _batch(arrow, schema, taken)


def _batch(arrow: ModuleType, schema: Any, taken: Iterable[tuple[object, ...]]) -> Any:
    columns = [
        arrow.array(column, type=field.type)
        for column, field in zip(zip(*taken, strict=True), schema, strict=True)
    ]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _library(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise QueryUnavailable(
            f"`{name}` is not installed: install Domicile with its extra `reports`, as "
            "pip install 'domicile[reports]'"
        ) from None
