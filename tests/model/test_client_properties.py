"""A client.properties in the words of both clients; what cannot be translated is refused by its key."""

import re
from pathlib import Path

import pytest

from onceproof.model.client_properties import SPARK_CLIENT, ClientProperties, java_options
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from tests.specimens.brokers import external_cluster

NOW = Release(4, 3, 1)
ODD = 'pa"ss\\w=ord'
JAAS = "org.apache.kafka.common.security"
SCRAM = f"""
# of a team
bootstrap.servers = one:9093,\\
    two:9093
security.protocol: SASL_SSL
sasl.mechanism SCRAM-SHA-512
sasl.jaas.config={JAAS}.scram.ScramLoginModule required \\
  username="t\\u00e9am" password="pa\\\\"ss\\\\\\\\w=ord";
ssl.truststore.type=PEM
ssl.truststore.location=FOLDER/ca.pem
"""


@pytest.fixture
def read(tmp_path):
    """Reads a file of this text, in which FOLDER has a CA."""
    (tmp_path / "ca.pem").write_text("a CA")

    def read(text: str) -> ClientProperties:
        file = tmp_path / "client.properties"
        file.write_text(text.replace("FOLDER", str(tmp_path)))
        return ClientProperties.read(file)

    return read


def test_scram_over_tls_is_translated_with_credentials_hidden(read, tmp_path):
    properties = read(SCRAM)
    assert properties.librdkafka() == {
        "bootstrap.servers": "one:9093,two:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "téam",
        "sasl.password": ODD,
        "ssl.ca.location": f"{tmp_path}/ca.pem",
    }
    java = properties.java(NOW)
    assert java["sasl.jaas.config"].endswith(r'password="pa\"ss\\w=ord";')
    assert java["bootstrap.servers"] == properties.bootstrap_servers
    assert java_options(java) == ()
    assert "ss" not in repr(properties) + repr(external_cluster())


def test_without_a_protocol_it_is_plaintext(read):
    assert read("bootstrap.servers=a:1").librdkafka() == {"bootstrap.servers": "a:1", "security.protocol": "PLAINTEXT"}


def test_a_certificate_of_our_own_is_translated_as_file_and_text(read, tmp_path):
    (tmp_path / "me.pem").write_text("key and chain")
    store = "bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.keystore.type=PEM\nssl.key.password=x\n"
    config = read(store + "ssl.keystore.location=FOLDER/me.pem\nssl.endpoint.identification.algorithm=").librdkafka()
    assert config["ssl.key.location"] == config["ssl.certificate.location"] == f"{tmp_path}/me.pem"
    assert config["ssl.key.password"] == "x"
    assert config["ssl.endpoint.identification.algorithm"] == "none"
    config = read(store + "ssl.keystore.key=K\\n\\\nK\nssl.keystore.certificate.chain=C").librdkafka()
    assert (config["ssl.key.pem"], config["ssl.certificate.pem"]) == ("K\nK", "C")


OAUTH = f"""bootstrap.servers=a:1
security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.token.endpoint.url=https://id/token
sasl.jaas.config={JAAS}.oauthbearer.OAuthBearerLoginModule required clientId=me clientSecret="s" scope="k";
"""


def test_client_credentials_are_translated_for_each_release(read):
    properties = read(OAUTH)
    assert properties.librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "k",
    }
    releases = ("3.3.1", "3.4.0", "4.3.1")
    handlers = [properties.java(Release.parse(r))["sasl.login.callback.handler.class"] for r in releases]
    validator = "sasl.oauthbearer.jwt.validator.class"
    assert validator not in properties.java(Release(4, 0, 1))
    assert properties.java(Release(4, 1, 0))[validator] == f"{JAAS}.oauthbearer.ClientJwtValidator"
    assert java_options(properties.java(Release(4, 0, 0))) == (
        "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://id/token",
    )
    assert handlers == [f"{JAAS}.oauthbearer{p}.OAuthBearerLoginCallbackHandler" for p in (".secured", "", "")]
    with pytest.raises(
        UsageError, match=r"Kafka 3\.0\.0 has no client credentials of OAUTHBEARER.*; take 3\.1\.0 or later"
    ):
        properties.java(Release(3, 0, 0))


SASL = "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\n"
PEM = (
    f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required username=a password=b;\n"
    "ssl.truststore.type=PEM\nssl.truststore.certificates=\\ A\\n\\tB\\\\n=:#!\\\n C\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bootstrap.servers=a:1\nfetch.max.bytes=1\nx.y=topsecret", r"fetch\.max\.bytes, x\.y cannot be given"),
        ("security.protocol=SSL", r"bootstrap\.servers is missing"),
        ("bootstrap.servers=a:1\nsecurity.protocol=TLS", "security.protocol=TLS is none of PLAINTEXT"),
        (SASL, "sasl.mechanism=GSSAPI is none of PLAIN"),
        (SASL + "sasl.mechanism=PLAIN", "must read `.*PlainLoginModule required"),
        (
            SASL + f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.scram.ScramLoginModule required password=topsecret;",
            "must read",
        ),
        (
            SASL + f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required password=topsecret;",
            "the options password and username for PLAIN",
        ),
        (SCRAM + "sasl.oauthbearer.token.endpoint.url=topsecret", "has no effect with sasl.mechanism=SCRAM-SHA-512"),
        (OAUTH.replace("sasl.oauthbearer.token.endpoint.url=https://id/token", ""), "endpoint.url is missing"),
        (OAUTH.replace("//id/", "//me:topsecret@id/"), r"endpoint\.url names a user; leave it out"),
        ("bootstrap.servers=a:1\nsasl.jaas.config=topsecret", "no effect with security.protocol=PLAINTEXT"),
        (
            "bootstrap.servers=a:1\nssl.truststore.location=/x.jks",
            "needs ssl.truststore.type=PEM: librdkafka reads no JKS",
        ),
        (
            SCRAM.replace("ca.pem", "nowhere.pem"),
            r"ssl\.truststore\.location=.*nowhere\.pem could not be read: No such file",
        ),
        (
            "bootstrap.servers=a:1\nssl.key.password=topsecret\\ud83d",
            r"ssl\.key\.password has U\+0000 or half a character",
        ),
        (
            "bootstrap.servers=a:1\nssl.truststore.type=PEM\nssl.truststore.location=topsecret\\u0000",
            r"ssl\.truststore\.location has U\+0000",
        ),
        (
            SASL
            + f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required "
            + 'username="a" password="topsecret\\\\ud83d";',
            r"sasl\.jaas\.config has U\+0000 or half",
        ),
        (OAUTH.replace("https://id/token", "https://[topsecret"), r"endpoint\.url is no URL"),
    ],
)
def test_a_refusal_is_one_sentence_without_credentials(read, text, expected):
    with pytest.raises(UsageError, match=expected) as refused:
        read(text)
    assert "topsecret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("key", ["bootstrap.servers", "sasl.jaas.config", "security.protocol", "ssl.key.password"])
@pytest.mark.parametrize("value", [5, ["topsecret:1", "b:1"], None, {"topsecret": 1}], ids=str)
def test_what_json_has_beside_texts_is_refused_by_its_key(key, value):
    with pytest.raises(UsageError, match=rf"^The connection x: {re.escape(key)} is no text") as refused:
        ClientProperties.of({"bootstrap.servers": "a:1", key: value}, "The connection x")
    assert "topsecret" not in str(refused.value)


def test_plain_is_translated_for_all_clients(read):
    login = f'{JAAS}.plain.PlainLoginModule required username="me" password="s";'
    properties = read(SASL + f"sasl.mechanism=PLAIN\nsasl.jaas.config={login}")
    fields = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert properties.librdkafka() == fields | {"sasl.username": "me", "sasl.password": "s"}
    assert properties.java(NOW) == fields | {"sasl.jaas.config": login}
    assert properties.spark() == {f"kafka.{key}": value for key, value in properties.java(NOW).items()}


def test_spark_gets_credentials_in_its_own_clients_form(read):
    options = read(OAUTH).spark()
    assert options["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://id/token"
    assert options["kafka.sasl.login.callback.handler.class"] == f"{JAAS}.oauthbearer.OAuthBearerLoginCallbackHandler"
    [connector] = (Path(__file__).parents[2] / "spark_jobs").glob("connector.pom.xml")
    [version] = re.findall(r"<artifactId>kafka-clients</artifactId>\s*<version>(.*)</version>", connector.read_text())
    assert Release.parse(version) == SPARK_CLIENT


@pytest.mark.parametrize("text", [SCRAM, OAUTH, SASL + PEM], ids=["escapes", "credentials", "lines"])
def test_what_is_written_is_read_again(read, tmp_path, text):
    properties = read(text)
    (tmp_path / "again").write_text(properties.text())
    assert ClientProperties.read(tmp_path / "again") == properties


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(UsageError, match=r"^/nowhere/x could not be read: No such file or directory; name a client"):
        ClientProperties.read(Path("/nowhere/x"))
