"""Issues tokens as an identity provider does with OpenID Connect: client credentials in, a signed token out."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

KEY_ID, LASTS = "one", 3600  # seconds


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _number(number: int) -> str:
    return _encoded(number.to_bytes((number.bit_length() + 7) // 8))


class Issuer:
    """Signs tokens for one client, whose id is their subject; `keys` is where brokers find the keys to verify them."""

    def __init__(self, folder: Path, client: str, secret: str) -> None:
        """Write the keys."""
        self._key = rsa.generate_private_key(65537, 2048)
        self._client, self._secret = client, secret
        public = self._key.public_key().public_numbers()
        document = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": KEY_ID,
            "n": _number(public.n),
            "e": _number(public.e),
        }
        self.keys = folder / "keys.json"
        self.keys.write_text(json.dumps({"keys": [document]}))
        self.url = ""

    def lets_in(self, authorization: str | None) -> bool:
        """Whether the credentials are those of the client."""
        known = base64.b64encode(f"{self._client}:{self._secret}".encode()).decode()
        return authorization == f"Basic {known}"

    def token(self) -> str:
        """A new one."""
        now = int(time.time())
        claims = {"sub": self._client, "scope": "kafka", "iat": now, "exp": now + LASTS}
        parts = ({"alg": "RS256", "typ": "JWT", "kid": KEY_ID}, claims)
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_encoded(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@contextmanager
def issuing(folder: Path, client: str, secret: str) -> Iterator[Issuer]:
    """An issuer that answers on loopback."""
    issuer = Issuer(folder, client, secret)

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            known = issuer.lets_in(self.headers["Authorization"])
            fields = {"access_token": issuer.token(), "token_type": "Bearer", "expires_in": LASTS} if known else {}
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(fields).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    issuer.url = f"http://127.0.0.1:{server.server_port}/token"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
