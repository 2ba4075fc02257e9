"""The page on its own, for users of this machine: there is no login, so it serves loopback only."""

import errno
import socket
from collections.abc import Callable

import uvicorn
from fastapi.middleware.trustedhost import TrustedHostMiddleware

from onceproof.model.errors import UsageError
from onceproof.page.app import create_app
from onceproof.settings import Settings

HOST = "127.0.0.1"


def serve(settings: Settings, port: int, announce: Callable[[str], None] = lambda _: None) -> None:
    """Serve until Ctrl-C or SIGTERM; `announce` is given the URL.

    Raises:
        UsageError: the port is taken, or not ours to take.
    """
    app = create_app(settings)
    # If another site's name were made to resolve here, its scripts could read the page.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError as error:
            taken = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise UsageError(f"Port {port} on {HOST} {taken}: name another one with --port.") from error
        announce(f"http://{HOST}:{listener.getsockname()[1]}/")
        uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False)).run(sockets=[listener])
