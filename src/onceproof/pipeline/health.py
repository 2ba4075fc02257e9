"""Whether a service of `docker-compose.yml` is healthy: `python health.py URL [PART]` exits with 0 if it is.

URL must answer 200; its JSON must call PART (`metadatabase`, `dag_processor`) healthy, if one is named.

Standard library only, and started without site-packages: it runs every few seconds as long as the service does.
"""

import json
import sys
import urllib.error
import urllib.request

TIMEOUT = 10.0  # seconds


def trouble(url: str, part: str | None = None) -> str | None:
    """What is wrong with the service, in one sentence; None if nothing is."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - the compose file names the URL
            told = answer.read()
        status = json.loads(told)[part]["status"] if part else "healthy"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{url} does not answer as it should: {type(error).__name__}: {error}."
    return None if status == "healthy" else f"{url} calls {part} {status}."


if __name__ == "__main__":
    sys.exit(trouble(*sys.argv[1:]))
