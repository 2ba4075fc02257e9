from onceproof.lab.cluster import Cluster, free_ports, java_client_config
from onceproof.model.release import Release


def test_an_external_clusters_credentials_are_translated_and_never_shown():
    config = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": "/ca.pem",
    }
    java = java_client_config(config)
    assert java == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }
    assert 'a"b' not in repr(Cluster(Release.parse("3.9.1"), "host:9092", config))


def test_free_ports_differ():
    assert len(set(free_ports(10))) == 10
