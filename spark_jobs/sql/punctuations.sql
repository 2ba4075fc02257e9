-- The promise `punctuations`: a punctuator releases each record of a buffer once, when it is due. One comparison for
-- each record, with how it was emitted and the first breach of it, and one for each that was emitted and is still
-- held. The lower half of an output value is the time from the record to its punctuation, in ms. The fact `clock`: 0
-- is stream time.
with
stated as (
    select trial, facts['clock'] = 0 as by_stream_time, facts['interval'] as "interval", has_ended(facts) as has_ended
    from trials  -- without the fact `clock` the drive failed at once: nothing is known of it
    where list_contains(promises, 'punctuations') and facts['clock'] is not null
),
judged as (select r.*, place_of(partition, r.offset) as place, s.* exclude (trial) from records r
    join stated s using (trial)),
-- Each record of the input, with the time that its task then has, and when it is due.
timed as (
    select trial, partition, key, place as source, timestamp as made, by_stream_time, "interval", has_ended,
        max(timestamp) over so_far as now, max(timestamp + value) over so_far as due
    from judged where role = 'input'
    window so_far as (partition by trial, partition order by "offset" rows between unbounded preceding and current row)
),
-- In stream time: when the last punctuation of each task must have come.
tasks as (
    select trial, partition, min(now) filter (now >= last - last % "interval") as over
    from (select *, max(now) over (partition by trial, partition) as last from timed where by_stream_time)
    group by trial, partition
),
due as (
    select trial, key, source, made, due, by_stream_time, coalesce(due <= over, has_ended) as is_over
    from timed left join tasks using (trial, partition)
),
released as (
    select *, made + (value & ((1::bigint << 32) - 1)) as moment,
        partition_of(place) = partition_of(source) as is_at_home
    from (select trial, key, place, value from judged where role = 'output') full join due using (trial, key)
),
times as (select distinct trial, partition, now from timed),
dated as (
    select r.*, t.now is not null as is_time_of_task,
        max(if(is_at_home, moment, null)) over (
            partition by r.trial, partition_of(place) order by place rows between unbounded preceding and 1 preceding
        ) as before,
        count(place) over (partition by r.trial, key) as number, max(place) over (partition by r.trial, key) as last
    from released r left join times t on t.trial = r.trial and t.partition = partition_of(place) and t.now = moment
),
named as (
    select *, is_at_home and by_stream_time and not is_time_of_task as is_strange,
        is_at_home and by_stream_time and due <= before and before < moment as is_behind,
        case
            when source is null then 'unexpected-record'
            when number = 0 then if(is_over, 'unreleased', null)
            when number > 1 then 'duplicate-output'
            when moment < due or is_strange then 'early-release'
            when is_behind then 'late-release'
        end as anomaly
    from dated where last is null or place = last
)
select trial, 'punctuations' as promise, anomaly, partition_of(coalesce(place, source)) as partition, key,
    if(number = 0, text_of_place('input', source), text_of_place('output', place)) as place,
    case
        when source is null then 'nothing'
        when number = 0 and not is_over then 'nothing before ' || due
        when number <> 1 then '1 record'
        when moment < due then 'at ' || due || ' or later'
        when is_strange then 'at a time of its task'
        when is_behind then 'at ' || before || ', as others'
        else 'at ' || moment
    end as expected,
    case
        when number = 0 and not is_over then 'nothing'
        when source is null or number <> 1 then records_text(number)
        else 'at ' || moment
    end as observed,
    1 as comparisons
from named
union all
-- In a buffer at the end, though they had been due and were emitted.
select trial, 'punctuations', 'unreleased', partition, key, place_text('buffer-changelog', partition, last), 'nothing',
    value_text(value), 0
from (
    select trial, partition, key, max("offset") as last, arg_max_null(value, "offset") as value
    from judged where role = 'buffer-changelog' group by trial, partition, key
) semi join (select trial, key, partition_of(source) as partition from due where is_over) using (trial, key, partition)
    semi join (from judged where role = 'output') using (trial, key)
where value is not null
