-- The promise `time-order`: each record of a stream finds the entry of a table at its own time. One comparison for each
-- record of the stream, and for each result of none. An output value is `number << 32 | entry`, 0 for no entry.
with
judged as (
    select r.*, place_of(partition, r.offset) as place, coalesce(facts['exactly_once'], 1) = 1 as exactly_once
    from records r join trials using (trial) where list_contains(promises, 'time-order')
),
held as (
    select trial, role, key, value as number, timestamp as moment, place as source,
        coalesce(last_value(if(role = 'entries', value, null) ignore nulls) over so_far, 0) as entry
    from judged where role in ('input', 'entries')
    window so_far as (
        partition by trial, partition, key order by timestamp rows between unbounded preceding and current row
    )
),
-- All entries that a key ever has.
ever as (
    select distinct trial, partition as home, key, value as found, true as is_ever from judged where role = 'entries'
),
results as (
    select trial, key, value >> 32 as number, count(*) as there, min(place) as first, max(place) as last,
        min_by(timestamp, place) as made, min_by(value & ((1::bigint << 32) - 1), place) as found,
        max_by(value & ((1::bigint << 32) - 1), place) as ended_with
    from judged where role = 'output' group by all
),
compared as (
    select trial, key, number, moment, source, entry, there, first, last, made, found, ended_with, exactly_once,
        partition_of(source) as home
    from (from held where role = 'input') full join results using (trial, key, number)
        join (select distinct trial, exactly_once from judged) using (trial)
),
ordered as (
    select *, max(if(partition_of(first) = home, first, null)) over (
        partition by trial, home order by source rows between unbounded preceding and 1 preceding
    ) as behind
    from compared
),
named as (
    select *,
        case
            when there is null then 'lost-record'
            when source is null then 'unexpected-record'
            when partition_of(first) <> home then 'wrong-partition'
            when made <> moment then 'wrong-timestamp'
            when found <> entry then if(found = 0 or is_ever, 'wrong-time', 'wrong-value')
            when exactly_once and there > 1 then 'duplicate-output'
            when first < behind then 'wrong-order'
        end as anomaly,
        case
            when there is null then source
            when source is null or anomaly = 'duplicate-output' then last
            else first
        end as place
    from ordered left join ever using (trial, home, key, found)
)
select trial, 'time-order' as promise, anomaly, partition_of(place) as partition, key,
    text_of_place(if(there is null, 'input', 'output'), place) as place,
    case
        when source is null then 'nothing'
        when anomaly = 'wrong-partition' then 'partition ' || home
        when anomaly = 'wrong-timestamp' then moment::varchar
        when anomaly = 'duplicate-output' then '1 record'
        when anomaly = 'wrong-order' then 'behind ' || text_of_place('output', behind)
        else number || ' with ' || if(entry = 0, 'nothing', entry::varchar)
    end as expected,
    case
        when there is null then 'nothing'
        when anomaly = 'wrong-partition' then 'partition ' || partition_of(first)
        when anomaly = 'wrong-timestamp' then made::varchar
        when anomaly = 'duplicate-output' then there || ' records'
        when anomaly = 'wrong-order' then 'at ' || text_of_place('output', first)
        when source is null then number || ' with ' || if(ended_with = 0, 'nothing', ended_with::varchar)
        else number || ' with ' || if(found = 0, 'nothing', found::varchar)
    end as observed,
    1 as comparisons
from named
