-- The promises about logs (`output-order`, `changelog` and their like): the records that the application wrote are
-- those that the replay of its input gives.
--
-- A trial states its logs (`spark_jobs.checks.Log`). Each log is fingerprinted, and so is the replay of the input.
-- Where both are the same, all is well, and one comparison stands for all records. Only logs that differ are looked at
-- record by record, and of these only the keys that differ.
--
-- A record is identified by its key and its number among the records of the key; under at-least-once, where a suffix
-- may be repeated, by key and value. A cached store's changelog is folded (a tombstone deletes) and compared key by
-- key; each record of it must still be one that the key had, and under exactly-once they come in the order of the
-- input.

create temp table logs as
select (row_number() over (order by trial, stated))::int as log, trial,
    coalesce(facts['exactly_once'], 1) = 1 as exactly_once,
    of.* rename (key as own_key)
from trials, unnest(logs) with ordinality as stated_logs (of, stated);

-- Only the first record of a key gives something in a log whose replay is `first`.
create temp table first_inputs as
select trial, partition, min("offset") as "offset"
from inputs semi join (from logs where replay = 'first') using (trial)
group by trial, partition, key;

-- The records that the replay of the input gives for each log, at the `place` of the input that gives them; `value` is
-- what is compared of it.
create temp view causes as
select log, coalesce(own_key, i.key) as key, place_of(i.partition, i.offset) as place, i.timestamp, i.headers,
    case
        when judged in ('value', 'number') then value
        when judged = 'change' then nullif(value, 0)  -- 0 deletes
        when judged = 'version' then if(value < 0, -value, null)
        when judged = 'answer' then 1
        when judged in ('gives', 'result') then gives
        else 0
    end as value
from inputs i join logs using (trial) left join first_inputs f
    on replay = 'first' and f.trial = i.trial and f.partition = i.partition and f.offset = i.offset
where case replay
    when 'first' then f.offset is not null
    when 'delete' then value = 0
    when 'version' then value <= 0
    when 'taken' then value >= 0
    when 'skipped' then value < 0
    else true
end;

-- The records of each log. `value` is what is compared, `raw` as it was written; `gone`: a tombstone. A punctuator
-- writes under keys below 0; an exception handler writes its own headers behind those of the input.
create temp view written as
select *, raw is null or value is null as gone
from (
    select log, r.key, place_of(r.partition, r.offset) as place, r.timestamp, r.value as raw,
        if(handled, regexp_replace(r.headers, ' ?__streams\.errors\..*', ''), r.headers) as headers,
        case
            when judged in ('value', 'change', 'version', 'gives') then r.value
            when judged = 'number' then r.value >> 32
            when judged = 'result' then nullif(r.value, 0)
            when judged = 'answer' then if(r.value in (0, 1), 1, r.value)
            else 0
        end as value
    from records r join logs using (trial, role)
    where not (punctuated and r.key < 0) and not (puts and r.value is null)
);

-- A fingerprint is equal for two sets of records only if (but for one in 2^64) their hashes are.
create temp macro fingerprint(side) as table
select log, partition_of(place) as partition, count(*) as records, sum(print) as print
from (
    select log, place, hash(if(folded, 0, row_number() over (partition by log, partition_of(place) order by place)),
        key, value, timestamp, headers) as print
    from query_table(side) join logs using (log)
)
group by log, partition_of(place);

create temp table compared_logs as
select log, greatest(coalesce(sum(c.records), 0), coalesce(sum(w.records), 0))::bigint as comparisons,
    bool_or(c.records is distinct from w.records or c.print is distinct from w.print) as differs
from fingerprint('causes') c full join fingerprint('written') w using (log, partition)
group by log;

-- In its `scope`, a partition or (-1) all of them, the records of a key are numbered.
create temp macro of_differing_logs(side) as table
select l.* exclude (trial, promise), s.* exclude (log), if(own_key is null, -1, partition_of(place)) as scope
from query_table(side) s join logs l using (log) semi join (from compared_logs where differs) using (log);

create temp table causes_of_differing as from of_differing_logs('causes');
create temp table written_of_differing as from of_differing_logs('written');

create temp macro prints_by_key(side, sign) as table
select log, key, sign as number, sign * hash(partition_of(place),
    row_number() over (partition by log, key, partition_of(place) order by place),
    value, timestamp, headers)::hugeint as print
from query_table(side);

create temp table differing_keys as
select log, key
from (from prints_by_key('causes_of_differing', 1) union all from prints_by_key('written_of_differing', -1))
group by log, key having sum(number) <> 0 or sum(print) <> 0;

create temp macro of_differing_keys(side) as table
from query_table(side) s
where exists (from differing_keys d where d.log = s.log and d.key is not distinct from s.key);

create temp table cause as from of_differing_keys('causes_of_differing');
create temp table record as from of_differing_keys('written_of_differing');

-- Under exactly-once: the records of each key, numbered in their scope.
create temp macro numbered(side) as table
select *, row_number() over (partition by log, key, scope order by place) as nth,
    count(*) over (partition by log, key, scope) as size
from query_table(side) where not folded and exactly_once;

create temp table breaches as
with
-- Under exactly-once: the n-th record of a key is what its n-th cause gives.
numbered_cause as (from numbered('cause')),
numbered_record as (from numbered('record')),
wanted_of_key as (
    select log, key, scope, count(*) as causes, min(place) as first from numbered_cause group by log, key, scope
),
found_of_key as (
    select log, key, scope, count(*) as there, max(place) as last, arg_max_null(raw, place) as raw
    from numbered_record group by log, key, scope
),
miscounted as (
    select log, key, role, coalesce(causes, 0) as causes, coalesce(there, 0) as there, first, last, raw
    from wanted_of_key full join found_of_key using (log, key, scope) join logs using (log)
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
    from wanted_last full join found_last using (log, key) join logs using (log)
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
    select log, 'lost-record' as anomaly, partition_of(first) as partition, key,
        text_of_place('input', first) as place,
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
breach as (
    from different union all from lost union all from unexpected union all from repeated
)
select * from breach union all
select * from strayed s
where not exists (from breach b where b.log = s.log and b.key is not distinct from s.key);

-- Under exactly-once: the records that stand behind one of a later cause.
create temp table disordered as
with
-- Of keys with as many records as causes, the n-th record with its n-th cause, in its partition.
pairs as (
    select log, key, r.place, c.place as source,
        lag(c.place) over (partition by log, partition_of(r.place) order by r.place) as behind
    from numbered('causes_of_differing') c join numbered('written_of_differing') r using (log, key, scope, nth, size)
    where partition_of(c.place) = partition_of(r.place)
)
from pairs where source < behind;

-- Under at-least-once: the records that neither continue what is there, nor repeat some of it.
create temp table interrupting as
with
sources as (
    select log, key, value, max(place) as source
    from causes_of_differing where not folded and not exactly_once
    group by log, key, value
),
numbered as (
    select w.log, w.key, w.place, source,
        dense_rank() over (partition by w.log, partition_of(w.place) order by source) as number
    from written_of_differing w join sources s
        on s.log = w.log and s.key = w.key and s.value is not distinct from w.value
    where partition_of(w.place) = partition_of(source)
),
reached as (
    select *, max(source) over earlier as behind, max(number) over earlier as highest
    from numbered
    window earlier as (
        partition by log, partition_of(place) order by place rows between unbounded preceding and 1 preceding
    )
)
select log, key, place, source, behind from reached where number > coalesce(highest, 0) + 1;

create temp table log_comparisons as
with
-- The keys of which another promise reports too few records.
counted_beside as (
    select log, r.key, count(*) as records
    from records r join logs on logs.trial = r.trial and logs.beside = r.role
    group by log, r.key
),
reported as (
    select log, key from cause where beside is not null group by log, key
    having count(*) > (
        select coalesce(sum(records), 0)
        from counted_beside b where b.log = cause.log and b.key is not distinct from cause.key
    )
),
wrong as (
    select log, anomaly, partition, key, place, expected, observed
    from breaches b
    where anomaly <> 'lost-record'
        or not exists (from reported r where r.log = b.log and r.key is not distinct from b.key)
    union all
    select log, 'wrong-order', partition_of(place), key, text_of_place(role, place),
        if(behind is null, 'of the first record', 'of a record behind ' || text_of_place('input', behind)),
        'of ' || text_of_place('input', source)
    from (from disordered union all from interrupting) join logs using (log)
)
select trial, promise, null::varchar as anomaly, 0 as partition, null::int as key, role as place,
    'what the replay says' as expected, 'the same' as observed, comparisons
from compared_logs join logs using (log) where comparisons > 0
union all
select trial, promise, anomaly, partition, wrong.key, place, expected, observed, 0
from wrong join logs using (log);
