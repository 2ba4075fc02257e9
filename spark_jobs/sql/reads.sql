-- The promise `reads`: a store returns what was put last. One comparison for each output record of the topology
-- `counting`: `number << 32 | found`. The record of the same key before it, in the order of the input, says what must
-- be found: its number. More is an anomaly only in an exactly-once trial: otherwise a record may be processed twice.
with
judged as (
    select r.*, facts['exactly_once'] = 1 as exactly_once
    from records r join trials using (trial) where list_contains(promises, 'reads')
),
asked as (
    select trial, key, value as number,
        lag(value, 1, 0) over (partition by trial, key order by partition, "offset") as before
    from judged where role = 'input'
),
given as (
    select trial, partition, "offset", key, value >> 32 as number, value & ((1::bigint << 32) - 1) as found,
        exactly_once
    from judged where role = 'output'
)
select trial, 'reads' as promise,
    case
        when found < wanted then 'stale-read'
        when found > wanted and exactly_once then 'dirty-read'
    end as anomaly,
    partition, key, place_text('output', partition, "offset") as place, wanted::varchar as expected,
    found::varchar as observed, 1 as comparisons
from (select *, coalesce(before, number - 1) as wanted from given left join asked using (trial, key, number))
