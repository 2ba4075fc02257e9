"""Java's `client.properties`, by which people reach brokers of their own, in the words of all clients.

What is here goes to the Java clients as it stands, and is translated for librdkafka and for Spark's Kafka source. A key
that cannot be translated is refused: a client that left it out would talk to the brokers in another way than the file
says. Values may be credentials, so no sentence quotes one that could be.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from onceproof.model.errors import UsageError
from onceproof.model.release import Release

SERVERS, PROTOCOL, MECHANISM, JAAS = "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config"
ENDPOINT, HANDLER = "sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"
VALIDATOR = "sasl.oauthbearer.jwt.validator.class"
OF_TOKENS = (ENDPOINT, HANDLER, VALIDATOR)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTH, OAUTH_PACKAGE = "OAUTHBEARER", "org.apache.kafka.common.security.oauthbearer"
SPARK_CLIENT = Release(3, 9, 1)  # as in spark_jobs/connector.pom.xml
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTH: f"{OAUTH_PACKAGE}.OAuthBearerLoginModule",
}
# Key of Java -> of librdkafka; none for what only Java needs.
KEYS = {
    SERVERS: "bootstrap.servers",
    PROTOCOL: "security.protocol",
    MECHANISM: "sasl.mechanism",
    JAAS: "",
    ENDPOINT: "sasl.oauthbearer.token.endpoint.url",
    HANDLER: "",
    VALIDATOR: "",
    "ssl.truststore.type": "",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.type": "",
    "ssl.keystore.location": "ssl.key.location",  # and the certificate's, see below
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.key.password": "ssl.key.password",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "client.dns.lookup": "client.dns.lookup",
}
# Option of the login module -> key of librdkafka.
OPTIONS = {"username": "sasl.username", "password": "sasl.password"}
OAUTH_OPTIONS = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
FILES = ("ssl.truststore.location", "ssl.keystore.location")
STORES = {
    "ssl.truststore.type": ("ssl.truststore.location", "ssl.truststore.certificates"),
    "ssl.keystore.type": ("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain"),
}
_PAIR = re.compile(r"((?:\\.|[^\s=:\\])+)[ \t\f]*[=:\s][ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")
_LOGIN = re.compile(r'\s*([\w.]+)\s+required((?:\s+\w+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";]+))*)\s*;\s*', re.DOTALL)
_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))', re.DOTALL)


@dataclass(frozen=True)
class ClientProperties:
    """How brokers are reached, checked and complete; holds credentials."""

    values: Mapping[str, str] = field(repr=False)  # as in the file
    login: Mapping[str, str] = field(repr=False, default_factory=dict)  # options of the login module

    @classmethod
    def read(cls, file: Path) -> "ClientProperties":
        """Read and check a file.

        Raises:
            UsageError: it cannot be read, or asks for something impossible; names the key.
        """
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise UsageError(f"{file} could not be read: {reason}; name a client.properties of Kafka.") from None
        return cls.of(dict(_pairs(text)), str(file))

    @classmethod
    def of(cls, values: Mapping[str, str], where: str) -> "ClientProperties":
        """Check values from some place.

        Raises:
            UsageError: something is impossible; names the key and the place.
        """
        try:
            return cls(*_check(dict(values)))
        except _RefusedError as refusal:
            raise UsageError(f"{where}: {refusal}") from None

    def text(self) -> str:
        """As a file has it, and `read` reads it."""
        return "".join(f"{key}={_escape(value)}\n" for key, value in self.values.items())

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers are, by comma."""
        return self.values[SERVERS]

    @property
    def user(self) -> str | None:
        """By what name the brokers know us, if the file says it."""
        return self.login.get("username")

    def librdkafka(self) -> dict[str, str]:
        """Configuration of clients of librdkafka."""
        config = {KEYS[key]: value for key, value in self.values.items() if KEYS[key]}
        if "ssl.key.location" in config:
            config["ssl.certificate.location"] = config["ssl.key.location"]
        if config.get("ssl.endpoint.identification.algorithm") == "":
            config["ssl.endpoint.identification.algorithm"] = "none"
        names = OPTIONS
        if self.values.get(MECHANISM) == OAUTH:
            names, config = OAUTH_OPTIONS, {**config, "sasl.oauthbearer.method": "oidc"}
        return config | {names[option]: value for option, value in self.login.items()}

    def spark(self) -> dict[str, str]:
        """Options of Spark's Kafka source, which has Java clients of one release."""
        return {f"kafka.{key}": value for key, value in self.java(SPARK_CLIENT).items()}

    def java(self, release: Release) -> dict[str, str]:
        """Configuration of the Java clients of a release.

        Raises:
            UsageError: the release has no client credentials of OAUTHBEARER (KIP-768, since 3.1).
        """
        if self.values.get(MECHANISM) != OAUTH:
            return dict(self.values)
        if release < Release(3, 1, 0):
            raise UsageError(
                f"Kafka {release} has no client credentials of {OAUTH}, which came with 3.1.0 (KIP-768); take 3.1.0 or "
                "later, or another mechanism."
            )
        config = dict(self.values)
        package = "secured." if release < Release(3, 4, 0) else ""  # moved by KAFKA-14496
        config[HANDLER] = f"{OAUTH_PACKAGE}.{package}OAuthBearerLoginCallbackHandler"
        if release.since(Release(4, 1, 0)):  # the default one needs jose4j, which clients lack (KAFKA-20184)
            config[VALIDATOR] = f"{OAUTH_PACKAGE}.ClientJwtValidator"
        return config


def java_options(config: Mapping[str, str]) -> tuple[str, ...]:
    """The properties that a JVM needs so that its clients may fetch a token: Kafka 4 requires it (CVE-2025-27817)."""
    return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={config[ENDPOINT]}",) if ENDPOINT in config else ()


def host_of(server: str) -> str:
    """The machine in an address of `bootstrap.servers`, with or without a protocol."""
    return server.rpartition("://")[2].rpartition(":")[0].strip()


class _RefusedError(Exception):
    """The contradiction, without the place."""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a properties file, as java.util.Properties reads them."""
    lines = iter(text.splitlines())
    for line in lines:
        whole = line.lstrip()
        if not whole or whole[0] in "#!":
            continue
        while (len(whole) - len(whole.rstrip("\\"))) % 2:  # continues
            whole = whole[:-1] + next(lines, "").lstrip()
        found = _PAIR.fullmatch(whole)
        key, value = found.groups() if found else (whole, "")
        yield _unescape(key), _unescape(value)


def _unescape(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        return (
            chr(int(code[1:], 16)) if len(code) == 5 else {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(code, code)
        )

    # Characters beyond 16 bits are written as two; a half that is alone is refused with its key.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escape(value: str) -> str:
    """A value as it stands in a file: with its own backslashes, line ends, and blanks in front."""
    text = (
        value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    return f"\\{text}" if text.startswith(" ") else text


def _check(values: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The values with absolute paths, and the options of the login module."""
    unknown = sorted(values.keys() - KEYS.keys())
    if unknown:
        raise _RefusedError(
            f"{', '.join(unknown)} cannot be given to every client; leave out all but {', '.join(KEYS)}."
        )
    for key, value in values.items():
        _check_text(key, value)
    if not values.get(SERVERS):
        raise _RefusedError(f"{SERVERS} is missing; add it.")
    protocol = values.setdefault(PROTOCOL, "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise _RefusedError(f"{PROTOCOL}={protocol} is none of {', '.join(PROTOCOLS)}.")
    for kind, keys in STORES.items():
        _check_store(values, kind, keys)
    for key in FILES:
        if key in values:
            values[key] = str(_readable(key, Path(values[key])))
    return values, _login(values) if protocol.startswith("SASL") else _no_login(values)


def _check_text(key: str, value: Any) -> None:
    """Check that it is a text that each client takes; the extra of a connection may hold anything that JSON has."""
    if not isinstance(value, str):
        raise _RefusedError(f"{key} is no text; write it as one, between quotation marks.")
    if _UNPRINTABLE.search(value):
        raise _RefusedError(f"{key} has U+0000 or half a character (\\ud800 to \\udfff); write whole ones.")


def _check_store(values: Mapping[str, str], kind: str, keys: tuple[str, ...]) -> None:
    used = [key for key in keys if key in values]
    if used and values.get(kind) != "PEM":
        raise _RefusedError(
            f"{used[0]} needs {kind}=PEM: librdkafka reads no JKS; `keytool -exportcert -rfc` and `openssl pkcs12` "
            "convert it."
        )


def _readable(key: str, file: Path) -> Path:
    try:
        file.open("rb").close()
    except OSError as error:
        raise _RefusedError(f"{key}={file} could not be read: {error.strerror}.") from None
    return file.absolute()


def _no_login(values: Mapping[str, str]) -> dict[str, str]:
    idle = [key for key in (MECHANISM, JAAS, *OF_TOKENS) if key in values]
    if idle:
        raise _RefusedError(
            f"{idle[0]} has no effect with {PROTOCOL}={values[PROTOCOL]}; take SASL_SSL, or leave it out."
        )
    return {}


def _login(values: Mapping[str, str]) -> dict[str, str]:
    """The options of the login module, which must be the mechanism's."""
    mechanism = values.get(MECHANISM, "GSSAPI")  # Kafka's default
    if mechanism not in MODULES:
        raise _RefusedError(f"{MECHANISM}={mechanism} is none of {', '.join(MODULES)}.")
    found = _LOGIN.fullmatch(values.get(JAAS, ""))
    if found is None or found[1] != MODULES[mechanism]:
        raise _RefusedError(f'{JAAS} must read `{MODULES[mechanism]} required NAME="VALUE" ...;` for {mechanism}.')
    options = {name: _unescape(quoted) if quoted else plain for name, quoted, plain in _OPTION.findall(found[2])}
    for value in options.values():
        _check_text(JAAS, value)
    known = OAUTH_OPTIONS if mechanism == OAUTH else OPTIONS
    needed = {name for name in known if name != "scope"}
    if not needed <= options.keys() <= known.keys():
        raise _RefusedError(
            f"{JAAS} must have the options {' and '.join(sorted(needed))} for {mechanism}, and no others."
        )
    if mechanism == OAUTH and ENDPOINT not in values:
        raise _RefusedError(f"{ENDPOINT} is missing, from which {OAUTH} gets its token.")
    try:
        endpoint = urlsplit(values.get(ENDPOINT, ""))
    except ValueError:
        raise _RefusedError(f"{ENDPOINT} is no URL; correct it.") from None
    if "@" in endpoint.netloc:  # it is on the JVM's command line
        raise _RefusedError(f"{ENDPOINT} names a user; leave it out: clientId and clientSecret belong into {JAAS}.")
    if mechanism != OAUTH and (idle := [key for key in OF_TOKENS if key in values]):
        raise _RefusedError(f"{idle[0]} has no effect with {MECHANISM}={mechanism}; leave it out.")
    return options
