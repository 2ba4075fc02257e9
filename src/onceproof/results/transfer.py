"""Moves what is stored from one results database to another, as a file: from the SQLite of `make up` to PostgreSQL."""

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, DateTime, Engine, Table, inspect, select
from sqlalchemy.orm import Mapper, Session

from onceproof.model.errors import UsageError
from onceproof.model.json_file import write_json
from onceproof.results.database import (
    WRITING,
    Base,
    PlantedTrialRow,
    RunRow,
    database,
    is_missing,
    is_same_run,
    is_same_trial,
)


def export_to(file: Path, url: str) -> int:
    """Write all that is stored as one JSON file: `{"schema": "0005", "tables": {"runs": [...], ...}}`.

    A row is an object of its columns and, below their names, of the rows that belong to it; ids that mean nothing
    outside of the database are left out. Returns the number of runs.

    Raises:
        UsageError: there is no such database.
        HarnessError: the database refuses, or the file cannot be written.
    """
    if is_missing(url):
        raise UsageError("There is nothing to export: no run has been stored in this results database.")
    with database(url) as engine, Session(engine) as session:
        tables = {
            _table(mapper).name: [_to_dict(row) for row in session.scalars(select(mapper.class_))]
            for mapper in _roots()
        }
        write_json(file, {"schema": _schema(engine), "tables": tables}, named=True)
    return len(tables["runs"])


def import_from(file: Path, url: str) -> tuple[int, int]:
    """Store what another database has exported, all or nothing. What is there already stays as it is.

    Ids of older runs may be those of other runs of another installation. Such a run gets an id of its own, by which it
    is found when it is imported again.

    Returns:
        How many runs were added, and how many were there.

    Raises:
        UsageError: another version of Onceproof has exported it, or it is not an export or cannot be read.
        HarnessError: the database refuses.
    """
    data = _read(file)
    with database(url) as engine:
        if data["schema"] != (schema := _schema(engine)):
            raise UsageError(
                f"{file} has the schema {data['schema']}, this Onceproof {schema}: export and import with one version."
            )
        counts = {}
        with Session(engine.execution_options(**WRITING)) as session, session.begin():
            for mapper in _roots():
                try:
                    rows = [_from_dict(mapper, row) for row in data["tables"][_table(mapper).name]]
                except (AttributeError, KeyError, TypeError, ValueError):
                    raise _no_export(file) from None
                new = [row for row in rows if not _is_there(session, row)]
                session.add_all(new)
                counts[_table(mapper).name] = len(new), len(rows) - len(new)
    return counts["runs"]


def _is_there(session: Session, row: Any) -> bool:
    """Whether a row is stored; one that has the key of another gets a key of its own."""
    with session.no_autoflush:
        other = _find_stored(session, row)
        if other is None:
            return False
        if isinstance(row, RunRow) and not is_same_run(row, other):
            row.id = _apart(row.id, row.created, row.installation)
        elif isinstance(row, PlantedTrialRow) and not is_same_trial(other, row):
            row.run = _apart(row.run, str(row.seed), row.machine)
        else:
            return True
        return _find_stored(session, row) is not None


def _find_stored(session: Session, row: Any) -> Any:
    mapper = inspect(row).mapper
    return session.get(mapper.class_, tuple(mapper.primary_key_from_instance(row)))


def _apart(run_id: str, *by: str) -> str:
    """Another id for a run of the same second."""
    digest = hashlib.sha256(" ".join((run_id, *by)).encode()).hexdigest()
    return f"{run_id.partition('-')[0]}-{digest[:8]}"


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"{file} could not be read ({error.strerror}): name another file.") from error
    except ValueError:
        raise _no_export(file) from None
    if not isinstance(data, dict) or data.keys() != {"schema", "tables"}:
        raise _no_export(file)
    return data


def _no_export(file: Path) -> UsageError:
    return UsageError(
        f"{file} is no export of a results database: name one that `results history --export` has written."
    )


def _roots() -> Iterator[Mapper[Any]]:
    """Tables that belong to no other, in the order of their names; all others hang below them."""
    mappers = (mapper for mapper in Base.registry.mappers if not _table(mapper).foreign_keys)
    return iter(sorted(mappers, key=lambda mapper: _table(mapper).name))


def _table(mapper: Mapper[Any]) -> Table:
    return cast(Table, mapper.local_table)  # no class of ours is mapped to anything else


def _schema(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _to_dict(row: Any) -> dict[str, object]:
    mapper = inspect(row).mapper
    values = {name: getattr(row, name) for name in _columns(mapper)}
    fields = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    return fields | {name: [_to_dict(child) for child in getattr(row, name)] for name in _children(mapper)}


def _from_dict(mapper: Mapper[Any], data: dict[str, Any]) -> Any:
    columns, children = _columns(mapper), _children(mapper)
    values = {name: _value(column, data[name]) for name, column in columns.items()}
    below = {name: [_from_dict(child, row) for row in data[name]] for name, child in children.items()}
    return mapper.class_(**values, **below)


def _value(column: Column[Any], value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(column.type, DateTime) and value is not None else value


def _columns(mapper: Mapper[Any]) -> dict[str, Column[Any]]:
    """The columns that say something by themselves: neither a number that the database gives, nor whose row it is."""
    table = _table(mapper)
    return {
        column.key: column
        for column in table.columns
        if column is not table.autoincrement_column and not column.foreign_keys
    }


def _children(mapper: Mapper[Any]) -> dict[str, Mapper[Any]]:
    return {relation.key: relation.mapper for relation in mapper.relationships if relation.uselist}
