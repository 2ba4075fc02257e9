"""What `onceproof.toml` declares: what is wrong is one sentence, and the records flow side by side."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.model.errors import UsageError
from onceproof.scenarios.declared import DeclaredApplication

HEAD = 'class = "a.B#topology"\njars = ["app.jar"]\n'
COMMAND = 'command = ["run.sh"]\n'
INPUT = '[[input]]\ntopic = "in"\n'
GENERATE = 'generate = { records = 3, key = "k{n}", value = "{1..1}" }\n'
OUTPUT = '[[output]]\ntopic = "out"\n'
SECOND = INPUT.replace('"in"', '"more"') + GENERATE.replace("3", "6").replace("{1..1}", "{1..1000}")
WHOLE = HEAD + INPUT + GENERATE + OUTPUT
QUERY = '[[query]]\nstore = "counts"\n'


def phase(text):
    return f"[[phase]]\n{text}\n"


def config(name, value):
    """The configuration of the input."""
    return WHOLE.replace(GENERATE, GENERATE + f'config = {{ "{name}" = "{value}" }}\n')


SLOW_3 = phase('start = 3\nproperties = { "commit.interval.ms" = 9 }')


def read(folder, text, **files):
    (folder / "onceproof.toml").write_text(text)
    (folder / "app.jar").touch()
    for name, content in files.items():
        (folder / f"{name}.jsonl").write_text(content)
    return DeclaredApplication.read(folder)


def refused(folder, text, **files):
    with pytest.raises(UsageError) as error:
        read(folder, text, **files).messages(1, 0)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_not_said_has_its_default(tmp_path):
    declares = read(tmp_path, WHOLE).declares
    assert (declares.partitions, declares.instances, declares.fault) == (2, 2, "instance-kill")
    assert declares.output[0].promises == ("differential",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class = ", "is no TOML"),
        (WHOLE.replace('class = "a.B#topology"\n', ""), "it takes either a class that gives the topology, or a command"),
        (WHOLE.replace("a.B#topology", "a b"), r'class = "a b": string should match'),
        (config("cleanup.policy", "shrink"), "cleanup.policy cannot be 'shrink'; it takes delete, compact, or both"),
        (config("max.message.bytes", "many"), "max.message.bytes cannot be 'many'; it takes a whole number of bytes"),
        (config("retention.ms", "1"), "by retention.ms brokers remove records that are still to be judged, leave it"),
        (config("segment.bytes", "1"), "by segment.bytes brokers remove records that are still to be judged"),
        (config("preallocate", "true"), "preallocate cannot be set here; choose from cleanup.policy, compression.type"),
        (
            config("cleanup.policy", "compact").replace('key = "k{n}", ', ""),
            "a topic with cleanup.policy = compact takes no record without a key: generate a key",
        ),
        (WHOLE + QUERY * 2, "the store counts is asked twice"),
        (COMMAND + WHOLE.replace(HEAD, "") + QUERY, "query is for a class: the stores of a command are its own"),
        (
            HEAD + 'properties = { "processing.guarantee" = "at_least_once" }\n' + WHOLE.replace(HEAD, "") + QUERY,
            "query takes processing.guarantee = exactly_once_v2: after a crash without transactions a store goes back",
        ),
        (
            HEAD + 'properties = { "application.server" = "a:1" }\n' + WHOLE.replace(HEAD, "") + QUERY,
            "application.server names each instance for the routes of queries, leave it out",
        ),
        ('colour = "red"\n' + WHOLE, "there is no field 'colour'; choose from class, command"),
        (WHOLE.replace("topic = ", 'tpoic = "x"\ntopic = ', 1), r"input\.1: there is no field 'tpoic'; did you mean topic\? Choose from topic, key"),
        ("partitions = 0\n" + WHOLE, r"partitions must be greater than or equal to 1, not 0"),
        (WHOLE.replace(OUTPUT, ""), "output is missing"),
        (WHOLE.replace(GENERATE, ""), "input.1: it takes either a file of records or what to generate"),
        (WHOLE.replace("jars", "#"), "it takes sources, jars or dependencies"),
        (COMMAND + HEAD + INPUT + GENERATE + OUTPUT, "it takes either a class that gives the topology, or a command"),
        (COMMAND + 'jars = ["app.jar"]\n' + INPUT + GENERATE + OUTPUT, "a command brings its own class path: leave out"),
        (COMMAND + '[properties]\n"commit.interval.ms" = 9\n' + INPUT + GENERATE + OUTPUT, "commit.interval.ms is for the"),
        (WHOLE.replace("app.jar", "other.jar"), "names other.jar, which is not there"),
        (WHOLE.replace('"out"', '"in"'), "the topic in is there twice"),
        (WHOLE + 'key = "avro"\n', r'output\.1\.key = "avro": must be one of string, integer'),
        (WHOLE + 'promises = ["fast"]\n', r"output\.1\.promises\.1 must be 'differential', .*, not \"fast\""),
        (WHOLE + 'compare = "keys"\ncompare_also = ["headers"]\n', "compare_also takes compare = records or final"),
        (
            WHOLE + 'compare_also = ["timestamp"]\nconfig = { "message.timestamp.type" = "LogAppendTime" }\n',
            "with message.timestamp.type = LogAppendTime a timestamp is different in each run",
        ),
        (WHOLE + 'of = "elsewhere"\n', "out is of elsewhere, which is no input"),
        (WHOLE.replace(INPUT, '[properties]\n"application.id" = "x"\n' + INPUT), "application.id is set for each"),
        (WHOLE.replace(INPUT, '[properties]\n"main.consumer.sasl.jaas.config" = "x"\n' + INPUT), "belongs into the file"),
        (WHOLE.replace(INPUT, '[properties]\n"ssl.keystore.password" = "x"\n' + INPUT), "belongs into the file that"),
        (WHOLE + 'promises = ["each-input-once"]\n' + SECOND, "needs `of`, one of in, more"),
        (WHOLE.replace(OUTPUT, "global = true\n" + OUTPUT), "each input is global, so there is nothing to process"),
        (WHOLE.replace("generate", 'value = "long"\ngenerate').replace("{1..1}", "one"), "generated for in does not fit"),
        (HEAD + INPUT + 'file = "in.jsonl"\n' + OUTPUT, "names in.jsonl, which is not there"),
        ('release = "4"\n' + WHOLE, 'release = "4": .4. is not a Kafka release'),
        ('uses = { joins = ["left"] }\n' + WHOLE, "joins cannot be 'left'; write a list of"),
        ("uses = { magic = true }\n" + WHOLE, "there is no feature 'magic'"),
        ('heap = "8m"\n' + WHOLE, 'heap = "8m": an instance does not start with less than 32m'),
        ('heap = "1GB"\n' + WHOLE, 'heap = "1GB": string should match pattern'),
        ('heap = "64m"\n' + COMMAND + INPUT + GENERATE + OUTPUT, r"a command gives its own JVM the heap \(-Xmx\)"),
        (WHOLE + phase("start = 1"), r"phase\.1\.start must be greater than or equal to 2, not 1"),
        (WHOLE + phase("start = 3"), "phase.1: it changes nothing: give it properties, a class"),
        (WHOLE + phase('start = 3\njars = ["new.jar"]'), "names new.jar, which is not there"),
        (WHOLE + phase('start = 3\ncommand = ["run.sh"]'), "phase 1 has a command, and the application a class"),
        (WHOLE + SLOW_3 + phase('start = 2\nheap = "64m"'), "phase 2 begins with start 2, and the one before it with start 3"),
        (WHOLE + phase('start = 2\nproperties = { "client.id" = "x" }'), "client.id is set for each instance by Onceproof"),
        (WHOLE + phase('start = 2\nproperties = { "processing.guarantee" = "x" }'), "cannot change on the way, because promises"),
        (COMMAND + INPUT + GENERATE + OUTPUT + SLOW_3, "phase 1 of a command can only have another command"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_that_names_it(tmp_path, text, sentence):
    assert re.search(sentence, refused(tmp_path, text))


def test_templates_are_taken_in_turn_so_that_a_key_can_change(tmp_path):
    generate = 'generate = { records = 7, key = ["k{n}", "k{n-1}"], value = ["first {1..1}", "then"] }\n'
    messages = read(tmp_path, WHOLE.replace(GENERATE, generate)).messages(1, 0)
    assert [(m.key.decode(), m.value.decode()) for m in messages] == [
        ("k0", "first 1"),
        ("k-1", "then"),
        ("k1", "first 1"),
        ("k0", "then"),
        ("k2", "first 1"),
        ("k1", "then"),
        ("k3", "first 1"),
    ]


def test_what_is_found_in_a_topology_can_be_corrected(tmp_path):
    declares = read(tmp_path, 'uses = { punctuators = false, joins = ["foreign-key"] }\n' + WHOLE).declares
    assert declares.corrected == {"punctuators": (False,), "joins": ("foreign-key",)}


def test_a_phase_changes_what_it_names_from_its_start_on(tmp_path):
    (tmp_path / "new.jar").touch()
    later = 'class = "a.C"\njars = ["new.jar"]\nproperties = { "commit.interval.ms" = 5, "x" = true }'
    text = HEAD + '[properties]\n"commit.interval.ms" = 1\n"y" = 2\n' + INPUT + GENERATE + OUTPUT
    app = read(tmp_path, text + phase(f"start = 2\n{later}") + phase('start = 4\nheap = "64m"'))
    assert app.declares.starts == (1, 2, 4)
    at = [app.declares.at(start) for start in (1, 2, 3, 4)]
    assert [one.class_ for one in at] == ["a.B#topology", "a.C", "a.C", "a.C"]
    assert [str(one.jars[0]) for one in at] == ["app.jar", "new.jar", "new.jar", "new.jar"]
    assert [one.heap for one in at] == [None, None, None, "64m"]
    assert app.properties("") == {"commit.interval.ms": "1", "y": "2"}
    assert app.properties("", 4) == {"commit.interval.ms": "5", "y": "2", "x": "true"}


def test_a_folder_without_the_file_is_told_how_to_get_one(tmp_path):
    with pytest.raises(UsageError, match="No such file or directory; `onceproof app init` writes one"):
        DeclaredApplication.read(tmp_path)


FILE = HEAD + INPUT + 'key = "long"\nfile = "in.jsonl"\n' + OUTPUT


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "has no records"),
        ("no", "line 1: 'no' is no JSON"),
        ('{"key": 1, "value": "a"}\n{"kee": 2}', "line 2: there is no field 'kee'; did you mean key? Choose from key, value, timestamp, headers."),
        ('{"key": "1", "value": "a"}', "line 1: the key '1' is not a whole number of 8 bytes, which the serde long of in"),
        ('{"key": 1, "value": 2}', "line 1: the value '2' is not a text"),
        ('{"key": 1, "timestamp": -1}', "timestamp must be greater than or equal to 0, not -1"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_is_named_by_its_line(tmp_path, line, sentence):
    assert sentence in refused(tmp_path, FILE, **{"in": line})


def test_a_topic_that_is_compacted_takes_no_record_without_a_key(tmp_path):
    compacted = FILE.replace('file = "in.jsonl"', 'file = "in.jsonl"\nconfig = { "cleanup.policy" = "compact" }')
    reported = refused(tmp_path, compacted, **{"in": '{"key": 1, "value": "a"}\n{"value": "b"}'})
    assert "line 2: it has no key, which in asks for, as its cleanup.policy is compact" in reported


def test_records_of_a_file_are_as_they_stand(tmp_path):
    lines = '{"key": 1, "value": "a", "timestamp": 5, "headers": {"h": "v", "n": null}}\n\n{"value": "b"}\n'
    one, other = read(tmp_path, FILE, **{"in": lines}).messages(1, 1_000)
    assert (one.key, one.value, one.timestamp) == (b"\0" * 7 + b"\1", b"a", 5)
    assert (one.partition, one.headers) == (None, (("h", b"v"), ("n", None)))
    assert (other.key, other.timestamp, other.partition) == (None, 1_000, 1)  # a record without a key has a partition


PARQUET = HEAD + INPUT + 'key = "bytes"\nfile = "in.parquet"\n' + OUTPUT


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "in.parquet")
    return read(folder, PARQUET)


def test_records_of_a_table_are_as_they_stand(tmp_path):
    headers = pa.array([[("h", "v")], None], pa.map_(pa.string(), pa.string()))
    one, other = parquet(
        tmp_path, key=[b"\0\xff", None], value=["a", "b"], timestamp=[5, None], headers=headers
    ).messages(1, 1_000)
    assert (one.key, one.value, one.timestamp, one.headers) == (b"\0\xff", b"a", 5, (("h", b"v"),))
    assert (other.key, other.value, other.headers) == (None, b"b", ())


def test_a_table_record_may_have_several_headers_of_one_name(tmp_path):
    headers = pa.array([[("h", b"\xff"), ("h", None)]], pa.map_(pa.string(), pa.binary()))
    [one] = parquet(tmp_path, key=[None], value=["a"], headers=headers).messages(1, 0)
    assert one.headers == (("h", b"\xff"), ("h", None))


def test_what_cannot_be_written_as_json_is_named_by_its_row(tmp_path):
    pq.write_table(pa.table({"value": [{"of": b"\xff"}]}), tmp_path / "in.parquet")
    with pytest.raises(UsageError, match=r"in\.parquet, row 1: the value .* is not any JSON"):
        read(tmp_path, PARQUET.replace("[[output]]", 'value = "json"\n[[output]]', 1)).messages(1, 0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"value": []}, "has no records"),
        ({"value": ["a", "b"], "k": [1, 2]}, r"in\.parquet, row 1: there is no field 'k'; choose from key"),
    ],
)
def test_a_row_that_does_not_fit_is_named_by_its_number(tmp_path, columns, sentence):
    with pytest.raises(UsageError, match=sentence):
        parquet(tmp_path, **columns).messages(1, 0)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "in.parquet").write_text("no")
    with pytest.raises(UsageError, match=r"in\.parquet could not be read"):
        read(tmp_path, PARQUET).messages(1, 0)


def test_inputs_flow_side_by_side_and_are_the_same_for_a_seed(tmp_path):
    application = read(tmp_path, WHOLE + SECOND)
    messages = application.messages(1, 0)
    assert [m.topic[0] for m in messages] == list("mimmimmim")
    assert application.messages(1, 0) == messages != application.messages(2, 0)
    assert [m.timestamp for m in messages] == [n * 1_000 // 2_000 for n in range(9)]


def test_what_is_read_into_a_global_table_comes_first(tmp_path):
    application = read(tmp_path, WHOLE + SECOND + "global = true\n")
    assert [m.topic[0] for m in application.messages(1, 0)] == list("mmmmmmiii")


def test_records_without_a_key_rotate_over_their_partitions(tmp_path):
    unkeyed = GENERATE.replace('key = "k{n}", ', "")
    second = (
        SECOND.replace('key = "k{n}", ', "").replace("GENERATE", "").replace('"more"\n', '"more"\npartitions = 3\n')
    )
    messages = read(tmp_path, HEAD + INPUT + unkeyed + second + OUTPUT).messages(1, 0)
    seen = {topic: {m.partition for m in messages if m.topic == topic} for topic in ("in", "more")}
    assert seen == {"in": {0, 1}, "more": {0, 1, 2}}


def test_values_are_filled_up_to_a_size(tmp_path):
    filled = WHOLE.replace('value = "{1..1}"', 'value = "{n}", size = 4')
    assert [message.value for message in read(tmp_path, filled).messages(1, 0)] == [b"0...", b"1...", b"2..."]
