"""A broker as companies run it: TLS, SCRAM, client certificates, and a user who may do only what ACLs say."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import psutil
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from onceproof.lab.artifacts import broker_class_path
from onceproof.lab.cluster import EmbeddedCluster, _format, _new_cluster_id, _start_node, free_ports
from onceproof.lab.java import Jvm
from onceproof.lab.permissions import GROUP, NEEDED, TOPIC, TRANSACTION, Permission
from onceproof.model.cell import MARK
from onceproof.model.release import Release
from onceproof.processes.waiting import await_condition
from tests.conftest import HERE
from tests.specimens.issuer import Issuer, issuing

RELEASE = Release(3, 9, 1)
USER, PASSWORD = "team", "planted-P4ssword"
KINDS = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    TRANSACTION: ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS = {
    "Create": AclOperation.CREATE,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Delete": AclOperation.DELETE,
}
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


class Authority:
    """A certificate authority."""

    def __init__(self, folder: Path, name: str) -> None:
        """Sign its own certificate, which is `file`."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._folder = folder
        own = self._certificate(self._name, self._key, 30, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def signs(self, name: str, days: int = 30) -> Path:
        """Key and certificate of somebody on loopback, in one file; with `days` below 0 it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
        certificate = self._certificate(subject, key, days, names)
        file = self._folder / f"{name}-of-{self.file.stem}-{days}.pem"
        clear = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, clear)
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        return file

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=40)).not_valid_after(now + timedelta(days=days))
        return builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


@dataclass(frozen=True)
class Secured:
    """The broker, and what its user needs."""

    folder: Path
    authority: Authority
    admin: AdminClient  # of a super user
    issuer: Issuer
    scram: str  # bootstrap servers
    mutual: str
    plain: str
    oauth: str

    def scram_properties(self, password: str = PASSWORD, ca: Path | None = None, servers: str | None = None) -> str:
        """A client.properties for SASL_SSL and SCRAM."""
        return self._password_properties(servers or self.scram, "SCRAM-SHA-512", "scram.Scram", password, ca)

    def scram_256_properties(self) -> str:
        """The same with the other hash that Kafka has."""
        return self._password_properties(self.scram, "SCRAM-SHA-256", "scram.Scram", PASSWORD)

    def plain_properties(self, password: str = PASSWORD) -> str:
        """A client.properties for SASL_SSL and PLAIN."""
        return self._password_properties(self.plain, "PLAIN", "plain.Plain", password)

    def _password_properties(
        self, servers: str, mechanism: str, module: str, password: str, ca: Path | None = None
    ) -> str:
        return (
            f"bootstrap.servers={servers}\nsecurity.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module}LoginModule required "
            f'username="{USER}" password="{password}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={ca or self.authority.file}\n"
        )

    def oauth_properties(self, secret: str = PASSWORD) -> str:
        """A client.properties for SASL_SSL and client credentials."""
        return (
            f"bootstrap.servers={self.oauth}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={self.issuer.url}\n"
            "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'clientId="{USER}" clientSecret="{secret}" scope="kafka";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority.file}\n"
        )

    def mutual_properties(self, certificate: Path) -> str:
        """A client.properties for TLS with a client certificate."""
        return (
            f"bootstrap.servers={self.mutual}\nsecurity.protocol=SSL\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority.file}\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={certificate}\n"
        )

    def allow(self, principal: str, *without: Permission, prefix: str = MARK) -> None:
        """Allow a principal all that a trial does with names of a prefix, and nothing else; except `without`."""
        for future in self.admin.delete_acls([ANY_ACL]).values():
            future.result(10)
        bindings = [_binding(principal, one, prefix) for one in NEEDED if one not in without]
        for future in self.admin.create_acls(bindings).values():
            future.result(10)

    def allow_quotas(self, principal: str) -> None:
        """Allow a principal to set quotas, too."""
        cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, f"User:{principal}", "*")
        for operation in (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS):
            binding = AclBinding(*cluster, operation, AclPermissionType.ALLOW)
            self.admin.create_acls([binding])[binding].result(10)

    def left(self) -> tuple[set[str], list[str]]:
        """Topics that are not Kafka's own, and groups."""
        topics = {name for name in self.admin.list_topics(timeout=10).topics if not name.startswith("__")}
        return topics, [group.group_id for group in self.admin.list_consumer_groups().result(10).valid]

    def await_left(self, *topics: str) -> None:
        """Wait until there are these topics and no group: brokers list what is deleted for a moment.

        Raises:
            HarnessError: something else is there.
        """
        await_condition(
            "what is deleted to go",
            lambda: self.left() == (set(topics), []),
            timeout=10,
            last_seen=lambda: f"There is: {self.left()}.",
        )


@contextmanager
def seen_in_ps(secret: str) -> Iterator[set[str]]:
    """The names of processes with a secret in their command line or environment, meanwhile."""
    seen: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    if secret in " ".join([*process.cmdline(), *process.environ().values()]):
                        seen.add(process.name())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def written_to(folder: Path, secret: str) -> Iterator[Path]:
    """The files below a folder that contain a secret; links are not followed."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes():
            yield path


def _binding(principal: str, permission: Permission, prefix: str) -> AclBinding:
    allow, operation = AclPermissionType.ALLOW, OPERATIONS[permission.operation]
    kind = KINDS[permission.resource]
    return AclBinding(kind, f"{prefix}.", ResourcePatternType.PREFIXED, f"User:{principal}", "*", operation, allow)


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """A broker with Kafka's own defaults, except for what it needs to run alone and locked."""
    with issuing(folder, USER, PASSWORD) as issuer:
        yield from _secured_broker(folder, issuer)


def _secured_broker(folder: Path, issuer: Issuer) -> Iterator[Secured]:
    authority = Authority(folder, "authority")
    admin, scram, mutual, plain, oauth, controller = (f"127.0.0.1:{port}" for port in free_ports(6))
    outside = f"SCRAM://{scram},MUTUAL://{mutual},PLAIN://{plain},OAUTH://{oauth}"
    config = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"ADMIN://{admin},{outside},CONTROLLER://{controller}",
        "advertised.listeners": f"ADMIN://{admin},{outside}",
        "listener.security.protocol.map": (
            "ADMIN:PLAINTEXT,SCRAM:SASL_SSL,MUTUAL:SSL,PLAIN:SASL_SSL,OAUTH:SASL_SSL,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "ADMIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url": issuer.keys.as_uri(),
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        **dict.fromkeys(
            (f"listener.name.scram.scram-sha-{bits}.sasl.jaas.config" for bits in (256, 512)),
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.signs("broker"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.file,
        "listener.name.mutual.ssl.client.auth": "required",
        "log.dirs": folder / "data-1",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
    }
    file = folder / "node-1.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    jvm = Jvm.of(HERE, broker_class_path(HERE, RELEASE))
    _format(jvm, [file], _new_cluster_id(), None)
    cluster = EmbeddedCluster(HERE, RELEASE, admin, folder, [_start_node(jvm, file, None, records=False)])
    try:
        cluster._await_ready()
        client = AdminClient(cluster.client())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsert = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            client.alter_user_scram_credentials([upsert])[USER].result(10)
        yield Secured(folder, authority, client, issuer, scram, mutual, plain, oauth)
    finally:
        cluster.stop()
