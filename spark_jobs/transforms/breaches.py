"""The closer look at logs that differ: which records of a key are not what their causes give.

One query of Spark moves the records of these logs, all of one key to one task; there DuckDB compares them. So the
plan is the same whatever the run has: each query of Spark's costs a tenth of a second and more, and DuckDB's some
milliseconds (ADR 28). Memory is bounded: what does not fit DuckDB writes to disk.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from spark_jobs.transforms.comparisons import arrow_table, struct
from spark_jobs.transforms.places import place

# What is wanted, what was found, and the number of records of a key in the role `beside` (a row each, as `value`).
# `timestamp` in ms, `place` as in `places`; `gone`: a tombstone; `raw`: the value as it was written.
SIDES = (
    "side string, log int, key int, place bigint, value bigint, raw bigint, gone boolean, timestamp bigint, "
    "headers string"
)
BREACHES = "log int, anomaly string, partition int, key int, place string, expected string, observed string"
LOGS = (
    "log int, role string, exactly_once boolean, folded boolean, counted boolean, history boolean, key int, "
    "beside string"
)
MEMORY = "512MB"  # of each task

MACROS = """
create macro partition_of(place) as (place >> 48)::int;
create macro text_of_place(role, place) as
    role || '/' || partition_of(place) || '@' || (place & ((1::bigint << 48) - 1));
create macro records_text(number) as if(number = 1, '1 record', number || ' records');
create macro value_text(value) as coalesce(value::varchar, 'nothing');
create macro headers_text(headers) as if(coalesce(headers, '') = '', 'no header', headers);
create temp table of_log as select * rename (key as own_key) from logs;
create temp table side_of_log as  -- in `scope`, a partition or all of them, the records of a key are numbered
    select *, if(own_key is null, -1, partition_of(place)) as scope from sides join of_log using (log);
create temp view cause as from side_of_log where side = 'wanted';
create temp view record as from side_of_log where side = 'found';
"""

# Each select gives `BREACHES`. `compared` has the records with what should have given them.
LOOK = """
with
-- Under exactly-once: the n-th record of a key is what its n-th cause gives.
numbered_cause as (
    select *, row_number() over (partition by log, key, scope order by place) as nth,
        count(*) over (partition by log, key, scope) as size
    from cause where not folded and exactly_once
),
numbered_record as (
    select *, row_number() over (partition by log, key, scope order by place) as nth,
        count(*) over (partition by log, key, scope) as size
    from record where not folded and exactly_once
),
wanted_of_key as (
    select log, key, scope, count(*) as causes, min(place) as first from numbered_cause group by log, key, scope
),
found_of_key as (
    select log, key, scope, count(*) as there, max(place) as last, arg_max_null(raw, place) as raw
    from numbered_record group by log, key, scope
),
miscounted as (
    select log, key, role, coalesce(causes, 0) as causes, coalesce(there, 0) as there, first, last, raw
    from wanted_of_key full join found_of_key using (log, key, scope) join of_log using (log)
    where coalesce(causes, 0) <> coalesce(there, 0) and not counted
),
-- Under at-least-once: what was written continues what is there, or repeats some of it.
cause_of_value as (
    select log, key, value, max(place) as source, arg_max_null(timestamp, place) as timestamp,
        arg_max_null(headers, place) as headers
    from cause where not folded and not exactly_once group by log, key, value
),
cause_of_key as (
    select log, key, arg_min_null(value, place) as value
    from cause where not folded and not exactly_once group by log, key
),
suffix as (select * from record where not folded and not exactly_once),
strange as (
    select s.*, k.log is not null as is_known, k.value as caused_value
    from suffix s left join cause_of_key k on k.log = s.log and k.key is not distinct from s.key
    where not exists (
        from cause_of_value c where c.log = s.log and c.key is not distinct from s.key
            and c.value is not distinct from s.value
    )
),
missing as (
    select log, key, role, count(*) as causes, min(place) as first
    from cause c
    where not folded and not exactly_once and not counted
        and not exists (
            from suffix s where s.log = c.log and s.key is not distinct from c.key
                and s.value is not distinct from c.value
        )
        and not exists (
            from strange s where s.log = c.log and s.key is not distinct from c.key and is_known
        )
    group by log, key, role
),
-- Folded: the tables that the two make, key by key; a tombstone deletes.
wanted_last as (
    select log, key, max(place) as source, arg_max_null(value, place) as caused_value,
        arg_max_null(timestamp, place) as caused, arg_max_null(headers, place) as caused_headers
    from cause where folded group by log, key
),
found_last as (
    select log, key, max(place) as place, arg_max_null(value, place) as value, arg_max_null(raw, place) as raw,
        arg_max_null(gone, place) as gone, arg_max_null(timestamp, place) as timestamp,
        arg_max_null(headers, place) as headers
    from record where folded group by log, key
),
last_of_key as (
    select * exclude (gone), caused_value is not null as is_wanted, not coalesce(gone, true) as is_there
    from wanted_last full join found_last using (log, key) join of_log using (log)
),
compared as (
    select c.log, c.key, c.role, r.place, c.place as source, r.value, c.value as caused_value, r.timestamp,
        c.timestamp as caused, r.headers, c.headers as caused_headers
    from numbered_cause c join numbered_record r
        on r.log = c.log and r.key is not distinct from c.key and r.scope = c.scope and r.nth = c.nth
            and r.size = c.size
    union all by name
    select s.log, s.key, s.role, s.place, source, s.value, c.value as caused_value, s.timestamp,
        c.timestamp as caused, s.headers, c.headers as caused_headers
    from suffix s join cause_of_value c
        on c.log = s.log and c.key is not distinct from s.key and c.value is not distinct from s.value
    union all by name  -- if nothing gives a record's value, nothing else of it is compared
    select log, key, role, place, place as source, value, caused_value, timestamp, timestamp as caused, headers,
        headers as caused_headers
    from strange where is_known
    union all by name
    select log, key, role, place, source, value, caused_value, timestamp, caused, headers, caused_headers
    from last_of_key where is_wanted and is_there
),
located as (select *, partition_of(place) as partition, partition_of(source) as home from compared),
different as (  -- the first aspect in which a record differs
    select log, 'wrong-partition' as anomaly, partition, key, text_of_place(role, place) as place,
        'partition ' || home as expected, 'partition ' || partition as observed
    from located where partition <> home
    union all
    select log, 'wrong-value', partition, key, text_of_place(role, place), value_text(caused_value), value_text(value)
    from located where partition = home and value is distinct from caused_value
    union all
    select log, 'wrong-timestamp', partition, key, text_of_place(role, place), caused::varchar, timestamp::varchar
    from located
    where partition = home and value is not distinct from caused_value and timestamp is distinct from caused
    union all
    select log, 'wrong-header', partition, key, text_of_place(role, place), headers_text(caused_headers),
        headers_text(headers)
    from located
    where partition = home and value is not distinct from caused_value and timestamp is not distinct from caused
        and headers is distinct from caused_headers
),
lost as (
    select log, 'lost-record' as anomaly, partition_of(first) as partition, key, text_of_place('input', first) as place,
        records_text(causes) || ' in ' || role as expected, records_text(there) as observed
    from (
        select log, key, role, causes, there, first from miscounted where there < causes
        union all select log, key, role, causes, 0, first from missing
        union all select log, key, role, 1, 0, source from last_of_key where is_wanted and not is_there and not counted
    )
),
unexpected as (
    select log, 'unexpected-record' as anomaly, partition_of(place) as partition, key,
        text_of_place(role, place) as place, 'nothing' as expected, value_text(raw) as observed
    from (
        select log, key, role, last as place, raw from miscounted where causes = 0
        union all select log, key, role, place, raw from strange where not is_known and not counted
        union all select log, key, role, place, raw from last_of_key where not is_wanted and is_there and not counted
    )
),
repeated as (
    select log, 'duplicate-output' as anomaly, partition_of(last) as partition, key,
        text_of_place(role, last) as place, records_text(causes) as expected, records_text(there) as observed
    from miscounted where there > causes and causes > 0
),
-- The records of a folded log that no input of their key gives, and those that stand behind a later one. Inputs that
-- give the same cannot be distinguished: a record may come from any of them. The next value of the key, with a
-- timestamp that it did not have with it, is `wrong-timestamp`.
given as (
    select log, key, value, timestamp, headers, min(place) as earliest, max(place) as latest
    from cause where folded and history group by log, key, value, timestamp, headers
),
value_given as (
    select log, key, value, list(timestamp) as times, arg_min_null(timestamp, earliest) as time,
        min(earliest) as earliest, max(latest) as latest
    from given group by log, key, value
),
traced as (
    select r.*, partition_of(r.place) as partition, g.latest, v.times, v.time, v.latest as latest_value,
        max(g.earliest) over before as behind, max(v.earliest) over before as behind_value
    from record r
        left join value_given v on v.log = r.log and v.key is not distinct from r.key
            and v.value is not distinct from r.value
        left join given g on g.log = r.log and g.key is not distinct from r.key
            and g.value is not distinct from r.value and g.timestamp is not distinct from r.timestamp
            and g.headers is not distinct from r.headers
    where folded and history
    window before as (
        partition by r.log, r.key order by r.place rows between unbounded preceding and 1 preceding
    )
),
judged as (
    select *, latest is null and coalesce(
        (behind_value is null or latest_value > behind_value) and not list_contains(times, timestamp), false
    ) as is_mistimed
    from traced
),
strayed as (
    select log, 'wrong-order' as anomaly, partition, key, text_of_place(role, place) as place,
        'of a record behind ' || text_of_place('input', behind) as expected,
        'of ' || text_of_place('input', latest) as observed
    from judged where exactly_once and latest <= behind
    union all
    select log, 'wrong-timestamp', partition, key, text_of_place(role, place), time::varchar, timestamp::varchar
    from judged where is_mistimed
    union all
    select log, 'unexpected-record', partition, key, text_of_place(role, place), 'what the key had', value_text(value)
    from judged where latest is null and not is_mistimed
),
breaches as (
    from different union all from lost union all from unexpected union all from repeated
),
-- The keys of which another promise reports too few records.
reported as (
    select log, key from cause group by log, key
    having count(*) > (
        select coalesce(sum(value), 0) from sides
        where side = 'beside' and sides.log = cause.log and sides.key is not distinct from cause.key
    )
)
select log, anomaly, partition, key, place, expected, observed
from (
    from breaches
    union all
    from strayed s
    where not exists (from breaches b where b.log = s.log and b.key is not distinct from s.key)
) b
where anomaly <> 'lost-record' or not exists (
    from reported r join of_log using (log)
    where beside is not null and r.log = b.log and r.key is not distinct from b.key
)
"""


def unite_sides(wanted: DataFrame, found: DataFrame, beside: DataFrame) -> DataFrame:
    """The records that are wanted and those that were found, in one frame, with what is known of the role `beside`.

    In: `find_causes` and `find_written` of `contents`; `beside`: log, key, value LONG. Out: `SIDES`, in any order.
    """
    rest = f.unix_millis("timestamp").alias("timestamp"), "headers"
    sides = {
        "wanted": wanted.select("log", "key", place("home", "source").alias("place"), "value", *rest),
        "found": found.select("log", "key", place().alias("place"), "value", "raw", "gone", *rest),
        "beside": beside,
    }
    named = [rows.withColumn("side", f.lit(side)) for side, rows in sides.items()]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), named)


def find_breaches(sides: DataFrame, logs: list[dict[str, Any]], tasks: int) -> DataFrame:
    """The records, or keys, of logs that are not as they must be; of their order, see `contents`.

    In: `SIDES`; rows of `contents.LOGS`. Out: `BREACHES`.
    """
    columns = struct(SIDES)
    look = partial(look_closer, logs=arrow_table(logs, LOGS), columns=to_arrow_schema(columns))
    # In this order: nothing compares the batches with the schema by which they are read.
    return sides.select(*columns.names).repartition(tasks, "log", "key").mapInArrow(look, BREACHES)


def look_closer(batches: Iterator[pa.RecordBatch], logs: pa.Table, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The breaches among the records of some keys, as batches of `BREACHES`.

    In: batches of `SIDES`, whose columns are given, too; `LOGS`.
    """
    import duckdb  # in the tasks alone

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        own: dict[str, Any] = {"threads": 1, "memory_limit": MEMORY, "temp_directory": folder}
        database = stack.enter_context(duckdb.connect(config=own))
        database.register("arriving", pa.RecordBatchReader.from_batches(columns, batches))
        database.execute("create temp table sides as from arriving")
        database.register("logs", logs)
        database.execute(MACROS)
        yield from database.sql(LOOK).to_arrow_reader()
