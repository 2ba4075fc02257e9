"""Your own applications on real brokers: red where a release loses their records, green where it does not."""

import json
import shutil
import stat
import subprocess
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from onceproof import cli
from onceproof.cli.schemas import SchemaName, schema
from onceproof.lab import applications
from onceproof.lab.applications import check_topology, uses_on
from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.sweep import run_of
from onceproof.model.cell import MARK, is_run_id
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import TrialPlan
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.scenarios.declared import DeclaredApplication, application_of
from tests.conftest import HERE, stood_still, undisturbed
from tests.published import NEWEST


@pytest.fixture
def examples(project, tmp_path):
    """A copy of the examples, to be changed."""
    return shutil.copytree(project / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("target"))


def small(examples):
    """Have word count take fewer lines, in one instance, where no fault needs more."""
    file = examples / "wordcount" / "onceproof.toml"
    text = file.read_text().replace("records = 12000", "records = 4000")
    file.write_text(text.replace("instances = 2 ", "instances = 1 "))


def app_run(folder, *options):
    """The exit code and the releases of a run during which the machine did not stand still."""

    def attempt():
        done = CliRunner().invoke(cli.app, ["app", "run", str(folder), *options, "--json"])
        assert isinstance(done.exception, SystemExit | None), done.exception
        answer = json.loads(done.stdout)
        Draft202012Validator(schema(SchemaName.APP_RUN)).validate(answer)
        return done.exit_code, answer["releases"]

    return undisturbed(attempt, void=lambda ended: stood_still(release["reason"] for release in ended[1]))


@pytest.mark.broker
def test_a_crash_loses_orders_where_uncommitted_state_is_trusted(examples):
    # Once in a dozen times the kill left no checkpoint that was trusted.
    bad = red_by_chance(examples / "orders", "4.1.2")
    assert bad["anomalies"]["lost-record"] > 0
    assert [issue["key"] for issue in bad["issues"]] == ["KAFKA-20685"], bad
    assert bad["unexplained"] == {}
    assert "delete the state directory" in bad["advice"]


@pytest.mark.night
@pytest.mark.broker
def test_what_is_planted_where_it_is_fixed_is_unknown(examples):
    code, [bad] = app_run(
        examples / "orders", "--streams", "4.3.1", "--seed", "1", "--plant", "batch-lost", "--known-is-ok"
    )
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert bad["issues"] == []
    assert bad["unexplained"] == bad["anomalies"]


@pytest.mark.night
@pytest.mark.broker
@pytest.mark.parametrize("streams", ["3.9.1", "4.4.0"])
def test_a_foreign_key_join_keeps_stale_results_without_a_fault(examples, streams):
    code, [bad] = app_run(examples / "foreign-key-join", "--streams", streams, "--seed", "1")
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert "without any fault" in bad["reason"]
    assert bad["anomalies"].keys() & {"unexpected-record", "wrong-value"}
    assert len(bad["folders"]) == 2  # no fault was tried
    assert [issue["key"] for issue in bad["issues"]] == ["KIP-213, same key (no JIRA)"], bad
    assert bad["unexplained"] == {}


@pytest.mark.night
@pytest.mark.broker
def test_a_foreign_key_join_keeps_none_before(examples):
    code, [good] = app_run(examples / "foreign-key-join", "--streams", "3.8.1", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["promises"]["replay"] > 3_000


@pytest.mark.night
@pytest.mark.broker
@pytest.mark.parametrize("streams", ["4.4.0"])
def test_a_suppressed_table_subtracts_what_was_never_emitted(examples, streams):
    code, [bad] = app_run(examples / "final-counts", "--streams", streams, "--seed", "1")
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert "without any fault" in bad["reason"]
    assert bad["anomalies"].keys() == {"wrong-value"}
    assert [issue["key"] for issue in bad["issues"]] == ["KIP-328, old value (no JIRA)"], bad
    assert bad["unexplained"] == {}
    records = json.loads((Path(bad["folders"][0]) / "outputs.json").read_text())["records"]
    sums, right = ({key: int(b64decode(sum_)) for _, key, sum_ in records[name]} for name in ("sums", "sums-of-stream"))
    assert sums.keys() == right.keys()
    assert all(sums[key] < right[key] for key in right)


def red_by_chance(folder, streams):
    """What a release shows that is nearly always red: a kill does not leave something behind each time."""
    reported = []
    for seed in "123":
        code, [found] = app_run(folder, "--streams", streams, "--seed", seed)
        reported.append(f"seed {seed}: {found['reason']}")
        if (code, found["judgement"]) == (1, "red"):
            return found
    pytest.fail("\n".join(reported))


@pytest.mark.night
@pytest.mark.broker
@pytest.mark.parametrize(("streams", "key"), [("4.1.2", "KAFKA-20685"), ("4.3.1", "KAFKA-20808")])
def test_windowed_dedup_loses_readings_or_a_thread(examples, streams, key):
    found = red_by_chance(examples / "deduplication", streams)
    assert [issue["key"] for issue in found["issues"]] == [key], found
    assert found["unexplained"] == {}


@pytest.mark.night
@pytest.mark.broker
def test_windowed_deduplication_is_green_where_both_are_fixed(examples):
    code, [good] = app_run(examples / "deduplication", "--streams", "4.4.0", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]


@pytest.mark.night
@pytest.mark.broker
def test_clicks_come_into_a_visit_twice_after_a_crash(examples):
    bad = red_by_chance(examples / "sessions", "4.1.2")
    assert bad["anomalies"].keys() == {"wrong-value"}
    assert [issue["key"] for issue in bad["issues"]] == ["KAFKA-20685"], bad
    assert bad["unexplained"] == {}
    assert bad["promises"]["replay"] == bad["promises"]["differential"] > 3_000
    assert {"3 clicks"} == {witness["expected"].split("'")[3].partition(":")[0] for witness in bad["witnesses"]}


@pytest.mark.night
@pytest.mark.broker
def test_a_visit_has_its_clicks_where_that_is_fixed(examples):
    code, [good] = app_run(examples / "sessions", "--streams", "4.4.0", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["promises"]["unique"] == good["promises"]["replay"] > 3_000


@pytest.mark.night
@pytest.mark.broker
def test_an_outbox_loses_messages_by_an_uncommitted_deletion(examples):
    bad = red_by_chance(examples / "outbox", "4.1.2")
    assert bad["anomalies"]["lost-record"] > 0
    assert [issue["key"] for issue in bad["issues"]] == ["KAFKA-20685"], bad


@pytest.mark.night
@pytest.mark.broker
def test_an_outbox_sends_each_message_once_where_it_does_not(examples):
    """What it sends by the clock is waited for, so nothing is missing at the end."""
    code, [good] = app_run(examples / "outbox", "--streams", "4.4.0", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["promises"]["deliveries"] == good["promises"]["differential"] == 8_000


@pytest.mark.broker
def test_sources_are_compiled_once_for_the_releases_of_a_line(examples):
    folder = str(examples / "sessions")

    def compiled(release):
        [classes] = applications.application_class_path(HERE, folder, Release.parse(release))
        return classes

    assert compiled("4.3.0") == compiled("4.3.1") != compiled("4.1.2")


@pytest.mark.broker
def test_what_an_application_uses_is_found_in_its_topology(examples):
    orders, join = (application_of(str(examples / name)) for name in ("orders", "foreign-key-join"))
    for release in (Release(3, 9, 1), Release(4, 3, 1), NEWEST):
        found = uses_on(HERE, orders, release)
        assert set(found["joins"]) == {"stream-stream"}
        assert set(found["stores"]) == {"rocksdb", "in-memory"}
        assert "punctuators" not in found  # it has a processor of its own
        assert uses_on(HERE, join, release)["joins"] == ("foreign-key",)


@pytest.mark.night
@pytest.mark.broker
def test_no_order_is_lost_by_a_crash_where_it_is_not(examples):
    code, [good] = app_run(examples / "orders", "--streams", "4.3.1", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["fault"]["observed"]["uncommitted_on_disk"]
    agreed = {topic: output["agreed"] for topic, output in good["outputs"].items()}
    assert agreed == {"accepted-orders": "records", "paid-orders": "records", "revenue": "final"}


@pytest.mark.broker
def test_words_are_counted_as_without_fault_and_bugs_are_found(examples):
    small(examples)
    options = ("--streams", "4.3.1", "--fault", "none", "--seed", "1", "--controls")
    code, [green] = app_run(examples / "wordcount", *options)
    assert (code, green["judgement"]) == (0, "green"), green["reason"]
    assert green["promises"]["stores"] == 2
    broke = {control["plant"]: control["broke"] for control in green["controls"] if control["fired"]}
    assert broke["record-twice"] == broke["record-skipped"] == {"counts": ["differential", "replay"]}
    assert green["vacuous"] == {}


def words_asked(examples):
    """Word count with a standby, of whose store clients ask."""
    small(examples)
    folder = examples / "wordcount"
    source = folder / "src" / "wordcount" / "WordCount.java"
    named = '.count(org.apache.kafka.streams.kstream.Materialized.as("counted"))'
    source.write_text(source.read_text().replace(".count()", named))
    file = folder / "onceproof.toml"
    properties = '[properties]\n"num.standby.replicas" = 1\n"statestore.cache.max.bytes" = 0\n'
    text = file.read_text().replace("[properties]\n", properties).replace("instances = 1 ", "instances = 2 ")
    file.write_text(text + '[[query]]\nstore = "counted"\nkey = "string"\nvalue = "long"\n')
    return folder


@pytest.mark.night
@pytest.mark.broker
def test_a_stale_answer_of_a_standby_is_found_if_injected(examples):
    options = ("--fault", "bounce", "--seed", "1", "--plant", "any-store-answers")
    code, [bad] = app_run(words_asked(examples), "--streams", "4.4.0", *options)
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert bad["anomalies"].keys() == {"stale-answer", "wrong-route"}
    assert bad["promises"]["queries"] > bad["anomalies"]["stale-answer"]


@pytest.mark.night
@pytest.mark.broker
def test_clients_get_allowed_answers_while_tasks_move(examples):
    code, [good] = app_run(words_asked(examples), "--streams", "4.4.0", "--fault", "bounce", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["promises"]["queries"] > 100
    assert good["promises"]["routing"] == 4


@pytest.mark.night
@pytest.mark.broker
def test_clients_find_no_owner_where_threads_overwrite_metadata(examples):
    folder = words_asked(examples)
    file = folder / "onceproof.toml"
    threads = '[properties]\n"group.protocol" = "streams"\n"num.stream.threads" = 2\n'
    text = file.read_text().replace("[properties]\n", threads).replace('"num.standby.replicas" = 1\n', "")
    file.write_text(text.replace("partitions = 2", "partitions = 4"))
    code, [bad] = app_run(folder, "--streams", "4.3.1", "--broker", "4.4.0", "--seed", "1")
    assert (code, bad["judgement"], bad["anomalies"].keys()) == (1, "red", {"wrong-route"}), bad["reason"]
    assert [issue["key"] for issue in bad["issues"]] == ["KAFKA-20782"], bad
    assert bad["unexplained"] == {}


@pytest.mark.night
@pytest.mark.broker
def test_words_are_counted_through_a_rolling_upgrade(examples):
    code, [rolled] = app_run(
        examples / "wordcount", "--streams", "3.9.1", "--roll-to", "4.3.1", "--broker", "4.3.1", "--seed", "1"
    )
    assert (code, rolled["judgement"]) == (0, "green"), rolled["reason"]
    assert (rolled["streams"], rolled["restart_on"]) == ("3.9.1", "4.3.1")
    assert {bounce["release"] for bounce in rolled["fault"]["observed"]["bounces"]} == {"4.3.1"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--roll-to", "4.3.1", "--fault", "pause"), "--roll-to 4.3.1 takes the place of --fault pause: take one."),
        (("--roll-to", "4.3.1"), "a rolling bounce takes two instances or more; its onceproof.toml has instances = 1."),
        (("--fault", "rolling-bounce"), "a rolling bounce takes a second release; name it with --roll-to."),
    ],
)
def test_an_impossible_rolling_upgrade_is_refused(examples, options, sentence):
    if "--fault" in options:
        file = examples / "orders" / "onceproof.toml"
        file.write_text(file.read_text().replace("instances = 1", "instances = 2"))
    done = CliRunner().invoke(cli.app, ["app", "run", str(examples / "orders"), "--streams", "3.9.1", *options])
    assert isinstance(done.exception, UsageError)
    assert sentence in str(done.exception)


@pytest.mark.broker
@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("wordcount.WordCount", "wordcount.Words", "There is no class wordcount.Words in the application's"),
        ("wordcount.WordCount", "wordcount.WordCount#get", "has no public static method get that takes Properties"),
        ("wordcount.WordCount", "java.lang.Object", "java.lang.Object is no Supplier<Topology>"),
        ('topic = "lines"', 'topic = "rows"', "its topology has no rows among its sources (lines)"),
        ('topic = "counts"', 'topic = "sums"', "its topology has no sums among its sinks"),
    ],
)
def test_what_cannot_be_built_is_said_before_anything_is_started(examples, before, after, sentence):
    file = examples / "wordcount" / "onceproof.toml"
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(UsageError) as refused:
        check_topology(HERE, application_of(str(examples / "wordcount")), NEWEST)
    assert sentence in str(refused.value)


PREFIX = "onceproof.20260101T000000-abcd.app-t1-"


@pytest.fixture
def described(examples, monkeypatch):
    """What is said of the topology of `orders` on brokers of somebody else, if it tells this of itself."""

    def check(sources, sinks=(), globals_=(), at_runtime=(), internal=()):
        fields = {"sources": sources, "sinks": list(sinks), "globals": list(globals_), "open": list(at_runtime)}
        fields["internal"] = list(internal)
        monkeypatch.setattr(applications, "application_class_path", lambda *_: [])
        monkeypatch.setattr(applications, "run_program", lambda *_, **__: fields)
        application = application_of(str(examples / "orders"))
        with pytest.raises(UsageError) as refused:
            check_topology(HERE, application, NEWEST, PREFIX)
        return str(refused.value)

    return check


BY_CODE = """
package counted;
import java.util.Properties;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
public class Counted {
    public static Topology topology(Properties config) {
        config.put("processing.guarantee", "at_least_once");
        config.put("default.key.serde", org.apache.kafka.common.serialization.Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines").to("out");
        return builder.build(config);
    }
}
"""


@pytest.mark.broker
def test_criteria_and_settings_by_code_are_said_before_the_start(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "Counted.java").write_text(BY_CODE)
    file = tmp_path / "onceproof.toml"
    file.write_text(
        'class = "counted.Counted#topology"\nsources = ["src"]\n[properties]\n"commit.interval.ms" = 100\n[[input]]\n'
        'topic = "lines"\ngenerate = { records = 1, value = "x" }\n[[output]]\ntopic = "out"\n'
    )
    with pytest.raises(UsageError, match=r"sets processing\.guarantee to at_least_once, by which it is judged: write"):
        check_topology(HERE, application_of(str(tmp_path)), NEWEST)
    file.write_text(file.read_text().replace("[properties]", '[properties]\n"processing.guarantee" = "at_least_once"'))
    application_of.cache_clear()
    check_topology(HERE, application_of(str(tmp_path)), NEWEST)
    assert uses_on(HERE, application_of(str(tmp_path)), NEWEST)["guarantee"] == ("at_least_once",)


def test_external_brokers_refuse_a_topology_without_the_prefix(described):
    reported = described([f"{PREFIX}orders", "payments"])
    assert "its topology has the topic payments, which may be one of yours" in reported
    assert "where {prefix} stands for that (docs/applications.md), or leave out --brokers" in reported
    assert "has the topic revenue, which" in described([f"{PREFIX}orders"], [f"{PREFIX}paid-orders", "revenue"])
    assert "has the topic rates, which" in described([f"{PREFIX}orders"], globals_=["rates"])


def test_only_internal_topics_may_lack_the_prefix(described):
    named = ["sums-repartition", f"{PREFIX}orders"]
    assert "has the topic sums-repartition, which may be one of yours" in described(named)
    assert "has no payments among its sources" in described(named, internal=["sums-repartition"])


def test_dead_letters_go_to_topics_with_the_prefix(examples, described):
    file = examples / "orders" / "onceproof.toml"
    name = '"errors.dead.letter.queue.topic.name"'
    file.write_text(file.read_text().replace("[properties]", f'[properties]\n{name} = "dead"'))
    assert "has the topic dead, which may be one of yours" in described([f"{PREFIX}orders"])


def test_external_brokers_refuse_topics_chosen_at_runtime(described):
    reported = described([f"{PREFIX}orders", f"{PREFIX}payments"], at_runtime=["KSTREAM-SINK-0000000007"])
    assert "chooses topics while it runs (KSTREAM-SINK-0000000007), which may be some of yours" in reported


def test_prefixed_topics_are_compared_with_the_file(described):
    reported = described([f"{PREFIX}orders", f"{PREFIX}payments"], [f"{PREFIX}accepted-orders"])
    assert "its topology has no paid-orders among its sinks (accepted-orders)" in reported


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        (None, "has no store seen (it has other); correct [[query]] in onceproof.toml."),
        (["MeteredWindowStore", "ChangeLoggingWindowBytesStore"], "only the answers of key-value stores can be judged"),
        (["MeteredVersionedKeyValueStore"], "a store seen of MeteredVersionedKeyValueStore, and only the answers of"),
        (["MeteredKeyValueStore", "ChangeLoggingKeyValueBytesStore", "MemoryNavigableLRUCache"], "without a limit of"),
        (["MeteredKeyValueStore", "RocksDBStore"], "without a changelog of its own"),
        (
            ["MeteredTimestampedKeyValueStore", "CachingKeyValueStore", "ChangeLoggingTimestampedKeyValueBytesStore"],
            'set "statestore.cache.max.bytes" = 0 in [properties], or leave it out of [[query]].',
        ),
        (["MeteredKeyValueStore", "ChangeLoggingKeyValueBytesStore", "RocksDBStore"], ""),
        (["MeteredTimestampedKeyValueStoreWithHeaders", "ChangeLoggingTimestampedKeyValueBytesStoreWithHeaders"], ""),
    ],
)
def test_a_store_whose_answers_cannot_be_judged_is_refused(examples, monkeypatch, layers, sentence):
    file = examples / "orders" / "onceproof.toml"
    file.write_text(file.read_text() + '[[query]]\nstore = "seen"\n')
    fields: dict[str, object] = {"sources": ["orders", "payments"], "sinks": [], "globals": [], "open": []}
    fields["internal"] = []
    fields["kinds"] = {"other": ["MeteredKeyValueStore"]} | ({"seen": layers} if layers else {})
    monkeypatch.setattr(applications, "application_class_path", lambda *_: [])
    monkeypatch.setattr(applications, "run_program", lambda *_, **__: fields)
    application = application_of(str(file.parent))
    if not sentence:
        check_topology(HERE, application, NEWEST)
        return
    with pytest.raises(UsageError) as refused:
        check_topology(HERE, application, NEWEST)
    assert sentence in str(refused.value)


@pytest.mark.broker
def test_a_topology_uses_the_prefix_or_is_refused(examples):
    check_topology(HERE, application_of(str(examples / "orders")), NEWEST, PREFIX)
    with pytest.raises(UsageError, match=r"its topology has the topic (lines|counts), which may be one of yours"):
        check_topology(HERE, application_of(str(examples / "wordcount")), NEWEST, PREFIX)
    file = examples / "orders" / "src" / "orders" / "Orders.java"
    file.write_text(file.read_text().replace('.to(prefix + "revenue",', '.to((key, value, record) -> "revenue",'))
    with pytest.raises(UsageError, match=r"chooses topics while it runs \(KSTREAM-SINK-\d+\)"):
        check_topology(HERE, application_of(str(examples / "orders")), NEWEST, PREFIX)


def test_external_brokers_are_checked_before_an_application_runs(examples, monkeypatch, tmp_path):
    done: list[Any] = []

    def run_on_release(_installation, asked, brokers, _agenda):
        with brokers.of(asked.whole) as (external,):
            done.append(("run on", external.bootstrap_servers, str(asked.cell.broker)))
        raise HarnessError("It ends here.")

    monkeypatch.setattr(applications, "check_topology", lambda *asked: done.append(("checked", asked[-1])))
    monkeypatch.setattr("onceproof.lab.artifacts.check_published", lambda _, releases: done.append(set(releases)))
    monkeypatch.setattr(
        "onceproof.lab.external_brokers.check_access", lambda external, *trials: done.append(("asked", len(trials)))
    )
    monkeypatch.setattr("onceproof.campaigns.application.run.run_on_release", run_on_release)

    @contextmanager
    def alive(_client, group):
        done.append(("alive", is_run_id(run_of(group, MARK) or "")))
        try:
            yield
        finally:
            done.append("over")

    monkeypatch.setattr("onceproof.lab.external_brokers.alive", alive)
    monkeypatch.setattr(
        "onceproof.lab.external_brokers.remove_run",
        lambda external, _: done.append(("left", external.bootstrap_servers)),
    )
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1")
    command = ["app", "run", str(examples / "orders"), "--streams", str(NEWEST), "--brokers", str(file)]
    refused = CliRunner().invoke(cli.app, [*command, "--nodes", "3"]).exception
    assert "--nodes says how many brokers are started, and with --brokers none is" in str(refused)
    assert "It ends here" in str(CliRunner().invoke(cli.app, command).exception)
    published, (_, prefix), *rest = done
    assert published == {NEWEST}  # whatever the brokers are
    assert prefix.startswith("onceproof.")
    assert rest == [
        ("asked", 1),
        ("alive", True),
        ("run on", "127.0.0.1:1", "3.9.2-claimed"),
        "over",
        ("left", "127.0.0.1:1"),
    ]


@pytest.mark.broker
def test_a_topic_of_the_topology_that_the_file_lacks_is_named(examples):
    file = examples / "orders" / "onceproof.toml"
    file.write_text(file.read_text().partition('[[output]]\ntopic = "revenue"')[0])
    with pytest.raises(UsageError, match=r"has revenue among its sinks, which onceproof\.toml does not declare"):
        check_topology(HERE, application_of(str(examples / "orders")), NEWEST)


RATES = """
[[input]]
topic = "rates"
key = "integer"
global = true
generate = { records = 40, key = "{1..40}", value = "rate {n}" }
"""


@pytest.fixture
def with_rates(examples):
    """Word count with a global table of which its file says nothing yet."""
    file = examples / "wordcount" / "src" / "wordcount" / "WordCount.java"
    made = "StreamsBuilder builder = new StreamsBuilder();"
    rates = 'builder.globalTable("rates", Consumed.with(Serdes.Integer(), Serdes.String()));'
    file.write_text(file.read_text().replace(made, f"{made}\n        {rates}"))
    small(examples)
    return examples / "wordcount"


@pytest.mark.broker
def test_what_is_read_into_a_global_table_is_declared_so(with_rates, examples):
    with pytest.raises(UsageError, match=r"reads rates into a global table or store; declare it .* global = true\."):
        check_topology(HERE, application_of(str(with_rates)), NEWEST)
    orders = examples / "orders" / "onceproof.toml"
    orders.write_text(orders.read_text() + RATES)
    with pytest.raises(UsageError, match=r"has no global table or store of rates; leave out global = true\."):
        check_topology(HERE, application_of(str(orders.parent)), NEWEST)


@pytest.mark.night
@pytest.mark.broker
def test_an_application_has_its_global_table_before_it_begins(with_rates):
    """Its topics have different numbers of partitions; its input is replayed on the newest release, too."""
    file = with_rates / "onceproof.toml"
    text = file.read_text().replace('topic = "lines"', 'topic = "lines"\npartitions = 3')
    text = text.replace('"replay"]', '"replay", "replay-newest"]')
    file.write_text(text.replace('topic = "counts"', 'topic = "counts"\npartitions = 1') + RATES + "partitions = 4\n")
    code, [green] = app_run(with_rates, "--streams", "3.9.1", "--fault", "none", "--seed", "1")
    assert (code, green["judgement"]) == (0, "green"), green["reason"]
    plan = TrialPlan.read(TrialFolder(Path(green["folders"][0])).trial_file)
    assert green["promises"]["replay-newest"] == green["promises"]["replay"] > 0
    assert plan.sizes == {"lines": 3, "counts": 1, "rates": 4}


DEPLOYED = """
package wordcount;

import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;

public class Main {
    public static void main(String[] arguments) {
        Properties config = new Properties();
        config.put("bootstrap.servers", System.getenv("ONCEPROOF_BOOTSTRAP_SERVERS"));
        config.put("application.id", System.getenv("ONCEPROOF_APPLICATION_ID"));
        config.put("state.dir", System.getenv("ONCEPROOF_STATE_DIR"));
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", "500");
        config.put("session.timeout.ms", "4000");
        config.put("heartbeat.interval.ms", "500");
        KafkaStreams streams = new KafkaStreams(new WordCount().get(), config);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
"""


@pytest.mark.night
@pytest.mark.broker
def test_a_deployed_application_is_compared_under_a_kill(examples):
    folder = examples / "wordcount"
    (folder / "src" / "wordcount" / "Main.java").write_text(DEPLOYED)
    own = applications.application_class_path(HERE, str(folder), NEWEST)
    path = ":".join(map(str, [*own, *streams_class_path(HERE, NEWEST)]))
    file = folder / "onceproof.toml"
    text = file.read_text().replace(
        'class = "wordcount.WordCount"', f"command = {['java', '-cp', path, 'wordcount.Main']}"
    )
    file.write_text(text.replace("sources =", "# ").replace('"commit.interval.ms" = 500', ""))
    application_of.cache_clear()
    code, [green] = app_run(folder, "--streams", str(NEWEST), "--seed", "1")
    assert (code, green["judgement"], green["streams"]) == (0, "green", f"{NEWEST}-claimed"), green["reason"]
    assert green["fault"]["observed"]["committed_afterwards"] >= 200
    assert green["promises"]["differential"] > 0
    assert green["not_looked_at"].keys() >= {"stores", "replay"}


@pytest.mark.broker
def test_joined_topics_must_have_equal_partition_counts(examples):
    source = examples / "wordcount" / "src" / "wordcount" / "WordCount.java"
    made = "StreamsBuilder builder = new StreamsBuilder();"
    table = 'builder.table("{}", Consumed.with(Serdes.String(), Serdes.String()))'
    joined = f"{table.format('left')}.join({table.format('right')}, (one, other) -> one + other);"
    source.write_text(source.read_text().replace(made, f"{made}\n        {joined}"))
    file = examples / "wordcount" / "onceproof.toml"
    sides = RATES.replace("global = true", "").replace('"integer"', '"string"')
    more = sides.replace("rates", "left") + sides.replace("rates", "right") + "partitions = 3\n"
    file.write_text(file.read_text() + more)
    done = CliRunner().invoke(cli.app, ["app", "run", str(file.parent), "--streams", "4.3.1"])
    assert isinstance(done.exception, HarnessError), done.exception
    assert "equally many partitions (" in str(done.exception)
    assert "left=2, right=3" in str(done.exception)


@pytest.mark.broker
def test_a_topology_unknown_to_a_release_is_reported_with_it(examples):
    folder = str(examples / "orders")
    check_topology(HERE, application_of(folder), NEWEST)
    with pytest.raises(
        UsageError, match=r"orders against Kafka Streams 3\.0\.0 does not compile: .*error: cannot find"
    ):
        check_topology(HERE, application_of(folder), Release(3, 0, 0))


def test_init_writes_an_application(tmp_path):
    done = CliRunner().invoke(cli.app, ["app", "init", str(tmp_path / "mine")])
    assert done.exit_code == 0, done.output
    assert DeclaredApplication.read(tmp_path / "mine").declares.class_ == "wordcount.WordCount"
    again = CliRunner().invoke(cli.app, ["app", "init", str(tmp_path / "mine")])
    assert isinstance(again.exception, UsageError)
    assert str(again.exception) == f"{tmp_path / 'mine'} is not empty; name another folder."


def test_init_leaves_a_folder_that_is_there_as_it_is(tmp_path):
    folder, foreign = tmp_path / "mine", tmp_path / "theirs" / "src"
    folder.mkdir()
    folder.chmod(0o1777)
    assert CliRunner().invoke(cli.app, ["app", "init", str(folder)]).exit_code == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    foreign.mkdir(parents=True)
    for taken in (foreign.parent, folder / "onceproof.toml"):
        refused = CliRunner().invoke(cli.app, ["app", "init", str(taken)])
        assert isinstance(refused.exception, UsageError)
    assert list(foreign.parent.iterdir()) == [foreign]
    assert not any(foreign.iterdir())


def test_a_fault_that_there_is_not_is_named(examples):
    done = CliRunner().invoke(
        cli.app, ["app", "run", str(examples / "orders"), "--streams", "4.3.1", "--fault", "rain"]
    )
    assert isinstance(done.exception, UsageError)
    assert "rain" in str(done.exception)


def built(folder, release):
    """The jar of the shop, with a release of Kafka Streams in it."""
    command = ["mvn", "-q", "-B", "-ntp", "package", f"-Dkafka.version={release}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    assert (folder / "target" / "shop.jar").is_file()
    return folder


AS_OF = """
package asof;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

public class AsOf {
    private static final Serde<String> S = Serdes.String();

    public static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> in = builder.stream("in", Consumed.with(S, S));
        KTable<String, String> table = in.filter((key, value) -> value.startsWith("T")).toTable(
                Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("table", Duration.ofHours(3)))
                        .withKeySerde(S).withValueSerde(S));
        in.filter((key, value) -> value.startsWith("S"))
                .leftJoin(table, (one, other) -> one + "|" + other, Joined.with(S, S, S))
                .to("out", Produced.with(S, S));
        return builder.build();
    }
}
"""
AS_OF_FILE = """
class = "asof.AsOf#topology"
sources = ["src"]
instances = 1

[properties]
"statestore.cache.max.bytes" = 0

[[input]]
topic = "in"
file = "in.jsonl"

[[output]]
topic = "out"
"""


def as_of(folder):
    """A join with the versions of a table: these come before the restart, and are asked for after it."""
    source = folder / "src" / "asof" / "AsOf.java"
    source.parent.mkdir(parents=True)
    source.write_text(AS_OF)
    began = 1_795_000_000_000
    versions = [(f"k-{n % 100}", f"T{n}", began + n * 1_000) for n in range(1_200)]
    asked = [(f"k-{n % 100}", f"S{n}", began + 600_000 + n % 1_200 * 500) for n in range(2_800)]
    lines = [json.dumps({"key": key, "value": value, "timestamp": t}) for key, value, t in (*versions, *asked)]
    (folder / "in.jsonl").write_text("\n".join(lines))
    (folder / "onceproof.toml").write_text(AS_OF_FILE)
    return folder


@pytest.mark.broker
def test_damage_of_a_clean_restart_shows_by_comparing_runs(tmp_path):
    code, [bad] = app_run(as_of(tmp_path), "--streams", "4.3.1", "--fault", "none", "--seed", "1")
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert "without any fault. No fault was injected: its instances were closed cleanly once" in bad["reason"]
    assert bad["anomalies"].keys() == {"wrong-value"}
    assert len(bad["folders"]) == 3  # two went straight on and agree
    assert "KIP-889 (no JIRA)" in [issue["key"] for issue in bad["issues"]], bad
    assert bad["unexplained"] == {}


SWITCHED_ON = """
[[phase]]
start = 3
properties = { "enable.transactional.statestores" = true }
"""


@pytest.mark.night
@pytest.mark.broker
def test_a_setting_that_comes_with_the_restart_is_tried(examples):
    file = examples / "orders" / "onceproof.toml"
    file.write_text(file.read_text() + SWITCHED_ON)
    code, [bad] = app_run(file.parent, "--streams", "4.4.0", "--fault", "instance-kill", "--seed", "1")
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert bad["anomalies"].keys() == {"stuck"}
    assert [issue["key"] for issue in bad["issues"]] == ["KIP-892 (no JIRA)"], bad
    assert bad["unexplained"] == {}


MOVED = """
package moved;

import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;

public class Moved implements Supplier<Topology> {
    private static final Serde<String> S = Serdes.String();

    @Override
    public Topology get() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in", Consumed.with(S, S))
                .selectKey((key, value) -> value)
                .repartition(Repartitioned.with(S, S).withName("moved").withNumberOfPartitions(2))
                .to("out", Produced.with(S, S));
        return builder.build();
    }
}
"""
MOVED_FILE = """
class = "moved.Moved"
sources = ["src"]
fault = "held-rebalance"

[[input]]
topic = "in"
generate = { records = 20000, key = "k-{n}", value = "v-{n}" }

[[output]]
topic = "out"
promises = ["differential", "unique"]
"""


@pytest.mark.night
@pytest.mark.broker
@pytest.mark.parametrize(("streams", "issues"), [("3.9.0", ["KAFKA-17635"]), ("3.9.1", [])])
def test_purged_records_are_lost_if_read_and_not_committed(tmp_path, streams, issues):
    source = tmp_path / "src" / "moved" / "Moved.java"
    source.parent.mkdir(parents=True)
    source.write_text(MOVED)
    (tmp_path / "onceproof.toml").write_text(MOVED_FILE)
    code, [found] = app_run(tmp_path, "--streams", streams, "--seed", "2")
    assert found["fault"]["bit"], found["reason"]
    assert (code, [issue["key"] for issue in found["issues"]]) == (int(bool(issues)), issues), found["reason"]
    assert set(found["anomalies"]) <= {"lost-record"}


SKIPS = """
package skips;

import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/** Records whose number is not even have no valid time, so Kafka Streams skips them. */
public class Skips implements Supplier<Topology> {
    private static final Serde<String> S = Serdes.String();

    @Override
    public Topology get() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> skipping = Consumed.with(S, S).withTimestampExtractor((record, time) ->
                Integer.parseInt((String) record.value()) % 2 == 0 ? record.timestamp() : -1);
        builder.stream("in", skipping).to("out", Produced.with(S, S));
        return builder.build();
    }
}
"""
SKIPS_FILE = """
class = "skips.Skips"
sources = ["src"]
instances = 1
fault = "bounce"

[[input]]
topic = "in"
config = { "cleanup.policy" = "compact", "message.timestamp.type" = "LogAppendTime" }
generate = { records = 8000, key = "k-{n}", value = "{n}" }

[[output]]
topic = "out"
promises = ["differential", "replay", "unique"]
config = { "cleanup.policy" = "compact,delete" }
"""


def skips(folder, program=SKIPS):
    """An application that half of its records hold no valid time for, so that they are skipped: the last ones, too."""
    source = folder / "src" / "skips" / "Skips.java"
    source.parent.mkdir(parents=True)
    source.write_text(program)
    (folder / "onceproof.toml").write_text(SKIPS_FILE)
    return folder


@pytest.mark.night
@pytest.mark.broker
def test_records_that_are_skipped_hold_up_nothing(tmp_path):
    code, [green] = app_run(skips(tmp_path), "--streams", "4.4.0", "--seed", "1")
    assert (code, green["judgement"]) == (0, "green"), green["reason"]
    assert (green["records"], green["promises"]["unique"]) == (8_000, 4_000)


@pytest.mark.broker
def test_brokers_keep_to_the_configuration_of_a_topic(tmp_path):
    # Brokers refuse records without a key in a compacted topic.
    program = SKIPS.replace('.to("out"', '.selectKey((key, value) -> (String) null).to("out"')
    code, [bad] = app_run(skips(tmp_path, program), "--streams", "4.4.0", "--seed", "1")
    assert (code, bad["judgement"]) == (1, "red"), bad["reason"]
    assert bad["anomalies"].keys() == {"thread-died"}
    assert "InvalidRecordException" in bad["witnesses"][0]["observed"]


@pytest.mark.night
@pytest.mark.broker
def test_two_faults_at_once_strike_two_instances(tmp_path):
    source = tmp_path / "src" / "moved" / "Moved.java"
    source.parent.mkdir(parents=True)
    source.write_text(MOVED)
    (tmp_path / "onceproof.toml").write_text(MOVED_FILE.replace('fault = "held-rebalance"', "instances = 3"))
    options = ("--fault", "pause", "--set", "beside=instance-kill", "--seed", "1")
    code, [green] = app_run(tmp_path, "--streams", "4.4.0", *options)
    assert (code, green["judgement"]) == (0, "green"), green["reason"]
    observed = green["fault"]["observed"]
    assert (green["fault"]["name"], green["fault"]["bit"]) == ("pause and instance-kill", True)
    assert observed["pause"]["instance"] != observed["instance-kill"]["instance"]


@pytest.mark.broker
def test_the_program_of_a_phase_is_built_before_any_start(examples):
    folder = examples / "wordcount"
    small(examples)
    later = folder / "later" / "wordcount"
    later.mkdir(parents=True)
    source = (folder / "src" / "wordcount" / "WordCount.java").read_text()
    (later / "Later.java").write_text(source.replace("WordCount", "Later"))
    file = folder / "onceproof.toml"
    text = file.read_text()
    phase = '\n[[phase]]\nstart = 2\nsources = ["later"]\nclass = "wordcount.{}"\n'
    file.write_text(text + phase.format("Latter"))
    with pytest.raises(UsageError, match=rf"on Kafka Streams {NEWEST}, from start 2 on: .* no class wordcount\.Latter"):
        check_topology(HERE, DeclaredApplication.read(folder), NEWEST)
    (later / "Later.java").write_text(source.replace("WordCount", "Later").replace('"counts"', '"sums"'))
    file.write_text(text + phase.format("Later"))
    with pytest.raises(UsageError, match=r"from start 2 on: its topology has no counts among its sinks \(sums\)"):
        check_topology(HERE, DeclaredApplication.read(folder), NEWEST)
    (later / "Later.java").write_text(source.replace("WordCount", "Later"))
    check_topology(HERE, DeclaredApplication.read(folder), NEWEST)


@pytest.mark.night
@pytest.mark.broker
def test_a_shop_in_one_jar_counts_twice_after_a_crash(examples):
    bad = red_by_chance(built(examples / "shop", "4.1.2"), "4.1.2")
    assert bad["streams"] == "4.1.2-claimed"
    assert bad["anomalies"].keys() == {"wrong-value"}
    assert bad["issues"] == []
    assert bad["unexplained"] == bad["anomalies"]


@pytest.mark.night
@pytest.mark.broker
def test_a_shop_in_one_jar_counts_right_where_that_is_fixed(examples):
    code, [good] = app_run(built(examples / "shop", "4.4.0"), "--streams", "4.4.0", "--seed", "1")
    assert (code, good["judgement"]) == (0, "green"), good["reason"]
    assert good["fault"]["observed"]["committed_afterwards"] >= 200
