-- The promise `matches`: what a join of two streams within a window of time gives. One comparison for each result that
-- the input gives, and for each that it does not. A record that comes too late, by more than the grace, may find its
-- matches or not, and be emitted alone or not. Results are distinguished by their key and value, `left << 32 | right`:
-- no two records of an input have the same. What comes again is a breach under exactly-once only. The fact `join`: 0
-- inner, 1 left, 2 outer.
create temp macro sides_text(value) as coalesce(nullif(value >> 32, 0)::varchar, 'nothing') || ' with '
    || coalesce(nullif(value & ((1::bigint << 32) - 1), 0)::varchar, 'nothing');

with
stated as (
    select trial, facts['window'] as "window", facts['grace'] as grace, facts['join'] as kind,
        coalesce(facts['before'], facts['window']) as before, facts['exactly_once'] = 1 as exactly_once,
        -- Records that wait alone are looked for once a second, so a drive that failed may owe some.
        has_ended(facts) as has_ended
    from trials  -- without the fact `join` the drive failed at once: the join is unknown
    where list_contains(promises, 'matches') and facts['join'] is not null
),
inputs_of_tasks as (
    select r.trial, r.partition, key, value, r.timestamp as moment, place_of(r.partition, r.offset) as source,
        s.* exclude (trial),
        r.timestamp < max(r.timestamp) over (
            partition by r.trial, r.partition order by r.offset rows between unbounded preceding and current row
        ) - grace as is_late
    from records r join stated s using (trial) where role = 'input'
),
left_side as (from inputs_of_tasks where value > 0),
right_side as (select * replace (-value as value) from inputs_of_tasks where value <= 0),
pairs as (
    select trial, l.key, (l.value << 32) + r.value as value, greatest(l.moment, r.moment) as moment,
        l.source as left_source,
        r.source as right_source, not (l.is_late or r.is_late) as is_due
    from left_side l join right_side r using (trial, partition, key)
    where r.moment - l.moment between -l.before and l."window"
),
met as (
    select trial, source, bool_or(is_due) as is_matched
    from (
        select trial, left_source as source, is_due from pairs union all select trial, right_source, is_due from pairs
    )
    group by trial, source
),
-- Those that are alone when their window has closed.
waiting as (
    select *, value << 32 as gives from left_side where kind >= 1
    union all
    select *, value as gives from right_side where kind = 2
),
alone as (
    select w.trial, key, gives as value, moment, w.source, is_matched is null and not is_late as is_due
    from waiting w left join met using (trial, source)
        join (select trial, partition, max(moment) as last from inputs_of_tasks group by all) using (trial, partition)
    where not coalesce(is_matched, false) and moment + "window" + grace < last
),
given as (
    select trial, key, value, moment, greatest(left_source, right_source) as source, is_due from pairs
    union all by name from alone
),
results as (
    select trial, key, value, count(*) as there, min(place_of(r.partition, r.offset)) as first,
        max(place_of(r.partition, r.offset)) as last, min_by(r.timestamp, place_of(r.partition, r.offset)) as made
    from records r semi join stated using (trial) where role = 'output' group by trial, key, value
),
compared as (
    select *, there is null as is_lost, source is null as is_unasked,
        value >> 32 = 0 or value & ((1::bigint << 32) - 1) = 0 as is_alone
    from given full join results using (trial, key, value) join stated using (trial)
),
named as (
    select *,
        case
            when is_lost then if(is_alone, 'lost-alone', 'lost-record')
            when is_unasked then if(is_alone, 'early-alone', 'unexpected-record')
            when partition_of(first) <> partition_of(source) then 'wrong-partition'
            when made is distinct from moment then 'wrong-timestamp'
            when exactly_once and there > 1 then 'duplicate-output'
        end as anomaly,
        case
            when is_lost then source
            when is_unasked or anomaly = 'duplicate-output' then last
            else first
        end as place
    from compared where not is_lost or (is_due and (not is_alone or has_ended))
)
select trial, 'matches' as promise, anomaly, partition_of(place) as partition, key,
    text_of_place(if(is_lost, 'input', 'output'), place) as place,
    case
        when is_unasked then 'nothing'
        when anomaly = 'wrong-partition' then 'partition ' || partition_of(source)
        when anomaly = 'wrong-timestamp' then moment::varchar
        when anomaly = 'duplicate-output' then '1 record'
        else sides_text(value)
    end as expected,
    case
        when is_lost then 'nothing'
        when anomaly = 'wrong-partition' then 'partition ' || partition_of(first)
        when anomaly = 'wrong-timestamp' then made::varchar
        when anomaly = 'duplicate-output' then there || ' records'
        else sides_text(value)
    end as observed,
    1 as comparisons
from named
