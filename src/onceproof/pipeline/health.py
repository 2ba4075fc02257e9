"""Whether a service of `docker-compose.yml` is healthy: `python health.py URL [PART]` exits with 0 if it is.

URL must answer 200; its JSON must call PART (`metadatabase`, `dag_processor`) healthy, if one is named. Of a URL
`tcp://HOST:PORT` a connection is enough.

Standard library only, and started without site-packages: it runs every few seconds as long as the service does.
"""

import json
import socket
import sys
import urllib.request
from urllib.parse import urlsplit

TIMEOUT = 10.0  # seconds


def trouble(url: str, part: str | None = None) -> str | None:
    """The trouble of the service, in one sentence; None if there is none."""
    at = urlsplit(url)
    try:
        if at.scheme == "tcp":
            socket.create_connection((at.hostname, at.port), TIMEOUT).close()
            return None
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - the compose file names the URL
            body = answer.read()
        status = json.loads(body)[part]["status"] if part else "healthy"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{url} does not answer as it should: {type(error).__name__}: {error}."
    return None if status == "healthy" else f"{url} calls {part} {status}."


if __name__ == "__main__":
    sys.exit(trouble(*sys.argv[1:]))
