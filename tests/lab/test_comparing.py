"""`onceproof release compare`: topologies on released Kafka Streams, in a JVM and without brokers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from onceproof.cli import app
from onceproof.lab.shapes import shapes_of
from onceproof.model.published import NEWEST
from onceproof.model.release import OLDEST, Release
from onceproof.scenarios.net import OPTIMIZED, programs, scenario_cases
from tests.conftest import HERE
from tests.published import PUBLISHED

pytestmark = pytest.mark.broker  # it needs Kafka Streams, though no broker
EXAMPLE = Path(__file__).parents[2] / "examples" / "foreign-key-join"
ENDS = (OLDEST, PUBLISHED.resolve(NEWEST))
NOT_BUILT = "Found a null keyChangingChild node"  # KAFKA-21357, and what came before it


def compare(*words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["release", "compare", *words, "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_a_renamed_store_is_lost(tmp_path):
    renamed = shutil.copytree(EXAMPLE, tmp_path / "renamed")
    [source] = renamed.rglob("*.java")
    source.write_text(source.read_text().replace('store("subscribed-store")', 'store("results-store")'))
    same, _ = compare(str(EXAMPLE), str(EXAMPLE), "--streams", "4.4.0")
    other, found = compare(str(EXAMPLE), str(renamed), "--streams", "4.4.0")
    assert (same, other) == (0, 1)
    assert "store subscribed-store is called results-store now" in json.dumps(found)


UNBUILT = """
package v;

import java.util.Properties;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.*;

public class V {
    public static class Same extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
            context().forward(record);
        }
    }

    public static Topology topology(Properties config) {
        StreamsBuilder b = new StreamsBuilder();
        KStream<String, String> all = b.<String, String>stream("in").selectKey((k, v) -> v).processValues(Same::new);
        all.groupByKey(Grouped.as("one")).reduce((x, y) -> y).toStream().to("last");
        all.groupByKey(Grouped.as("two")).reduce((x, y) -> x).toStream().to("first");
        return b.build(config);
    }
}
"""
UNBUILT_FILE = """
class = "v.V#topology"
sources = ["src"]

[properties]
"topology.optimization" = "all"
"default.key.serde" = "org.apache.kafka.common.serialization.Serdes$StringSerde"
"default.value.serde" = "org.apache.kafka.common.serialization.Serdes$StringSerde"

[[input]]
topic = "in"
generate = { records = 10, value = "v" }

[[output]]
topic = "last"

[[output]]
topic = "first"
"""


def test_an_application_that_builds_nowhere_is_not_called_equal(tmp_path):
    source = tmp_path / "src" / "v" / "V.java"
    source.parent.mkdir(parents=True)
    source.write_text(UNBUILT)
    (tmp_path / "onceproof.toml").write_text(UNBUILT_FILE)
    code, found = compare("4.0.0", "4.4.0", "--application", str(tmp_path))
    assert code == 1
    assert "it builds on neither: StreamsException: Found a null keyChangingChild node" in json.dumps(found)


@pytest.mark.parametrize("release", ENDS, ids=str)
def test_each_scenarios_topology_takes_its_settings_and_records(release: Release):
    shapes = shapes_of(HERE, release, scenario_cases(release))
    assert {name: shape.error or shape.failed for name, shape in shapes.items() if shape.error or shape.failed} == {}
    assert [name for name, shape in shapes.items() if not shape.tried] == []


@pytest.mark.parametrize("release", ENDS, ids=str)
def test_all_programs_of_the_net_build_except_known_ones(release: Release):
    shapes = shapes_of(HERE, release, programs())
    unbuilt = {name: shape.error for name, shape in shapes.items() if shape.error}
    assert [name for name, error in unbuilt.items() if not name.endswith(OPTIMIZED)] == []
    assert {name: error for name, error in unbuilt.items() if NOT_BUILT not in error} == {}
    assert {name: shape.failed for name, shape in shapes.items() if shape.failed} == {}
    assert len(shapes) - len(unbuilt) > 500  # of some 570


@pytest.mark.night  # some 600 topologies on two releases
def test_changes_of_optimized_topologies_in_4_3_are_found():
    code, found = compare("4.2.2", "4.3.1")
    shown = json.dumps(found)
    assert code == 1
    assert "Found a null keyChangingChild node" in shown  # KAFKA-21357
    assert "sub-topology 2 disappears, which reads sums-repartition" in shown  # KAFKA-20264
    assert compare("4.3.1", "4.4.0")[0] == 0
