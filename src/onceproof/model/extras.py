"""The programs that come with an extra of the package, by its name: `pip install 'onceproof[pipeline]'`."""

from collections.abc import Mapping
from importlib.util import find_spec

from onceproof.model.errors import UsageError

PIPELINE, PARQUET, POSTGRES, WORKERS = "pipeline", "parquet", "postgres", "workers"
# The modules by which an extra is recognised, and their names.
BRINGS: dict[str, Mapping[str, str]] = {
    PIPELINE: {"airflow": "Airflow", "pyspark": "Spark", "great_expectations": "Great Expectations"},
    PARQUET: {"pyarrow": "PyArrow"},
    POSTGRES: {"psycopg": "psycopg"},
    WORKERS: {"celery": "Celery"},
}


def is_installed(extra: str) -> bool:
    """Whether an extra is installed."""
    return not _missing(extra)


def require(extra: str, needed_by: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: its name.
        needed_by: the command or the file that needs it, the subject of the sentence.

    Raises:
        UsageError: it is not; names what is missing, and how it is installed.
    """
    if missing := _missing(extra):
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise UsageError(
            f"{needed_by} needs {listed}, which {'are' if others else 'is'} not installed: install the extra "
            f"{extra}, for example by `pipx install --force 'onceproof[{extra}]'` (docs/installing.md)."
        )


def _missing(extra: str) -> list[str]:
    return [name for module, name in BRINGS[extra].items() if find_spec(module) is None]
