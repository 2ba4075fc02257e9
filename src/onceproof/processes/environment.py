"""The part of our environment that processes of ours see: no credentials, whatever they are for."""

import os
import re
from collections.abc import Mapping

from onceproof.model.secret import SECRET_KEY

# What a program needs to run at all, and what is for us; of unknown names some hold credentials.
NEEDED = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|(?:LC|JAVA|JDK|LD|FAKETIME|ONCEPROOF)_\w+")
OF_AIRFLOW = ("AIRFLOW_", "_AIRFLOW_")  # its connections, variables and database
DATABASE = "ONCEPROOF_DATABASE_URL"  # may name a user and a password, or a place where there are some
LOGIN = re.compile(r"://[^\s/@]+@")  # in a URL


def without_credentials(environ: Mapping[str, str] = os.environ, *, user_code: bool = False) -> dict[str, str]:
    """The variables that a process may see; for user code (`user_code`) only what it needs to run."""
    return {
        name: value
        for name, value in environ.items()
        if not _is_credential(name, value) and (not user_code or NEEDED.fullmatch(name))
    }


def _is_credential(name: str, value: str) -> bool:
    return (
        name.upper() == DATABASE
        or name.startswith(OF_AIRFLOW)
        or SECRET_KEY.search(name) is not None
        or LOGIN.search(value) is not None
    )
