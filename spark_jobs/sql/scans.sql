-- The promise `scans`: a scan of a store finds what was put and not deleted. One comparison for each request to delete
-- a key, by what the following scan found, and for each unasked answer. An answer is `number of keys << 32 | sum of
-- keys`. Redelivered requests may be answered again, except under exactly-once. Each key is put once, and deleted (the
-- value 0) once at most.
create temp macro keys_text(number, total) as if(number = 1, '1 key', number || ' keys') || ' with the sum ' || total;

with
judged as (
    select r.*, place_of(partition, r.offset) as place, facts['exactly_once'] = 1 as exactly_once,
        facts['reach'] as reach,
        facts['all_every'] as every
    from records r join trials using (trial) where list_contains(promises, 'scans')
),
spans as (
    select trial, partition, key as other, min("offset") filter (value <> 0) as put,
        min("offset") filter (value = 0) as gone
    from judged where role = 'input' group by trial, partition, key
),
asked as (
    select trial, partition, "offset", key, place as request, key % every = 0 as is_whole, reach
    from judged where role = 'input' and value = 0
),
-- A scan goes over the keys near that of the request, or over the whole store.
scanned as (
    select a.trial, a.key, a.offset, other, put, gone
    from (select *, unnest(range(key::bigint - reach, key::bigint + reach + 1)) as other from asked
        where not is_whole) a
        join spans using (trial, partition, other)
    union all
    select a.trial, a.key, a.offset, other, put, gone
    from asked a join spans using (trial, partition) where is_whole
),
found as (
    select trial, key, count(*) as number, sum(other)::bigint as total
    from scanned where put < "offset" and (gone is null or gone > "offset")
    group by trial, key
),
answers as (
    select trial, key, count(*) as answers, min(place) as first, max(place) as last,
        min_by(value, place) as first_value, max_by(value, place) as last_value
    from judged where role = 'output' group by trial, key
),
compared as (
    select trial, key, request, coalesce(number, 0) as wanted, coalesce(total, 0) as wanted_total, answers, first,
        last,
        first_value >> 32 as number, first_value & ((1::bigint << 32) - 1) as total,
        last_value >> 32 as last_number, last_value & ((1::bigint << 32) - 1) as last_total, exactly_once
    from asked left join found using (trial, key) full join answers using (trial, key)
        join (select distinct trial, exactly_once from judged) using (trial)
),
named as (
    select *,
        case
            when request is null then 'unexpected-record'
            when answers is null then 'lost-record'
            when number < wanted then 'missing-key'
            when number <> wanted or total <> wanted_total then 'ghost-key'
            when exactly_once and answers > 1 then 'duplicate-output'
        end as anomaly,
        if(request is null or anomaly = 'duplicate-output', last, first) as place
    from compared
)
select trial, 'scans' as promise, anomaly, partition_of(coalesce(place, request)) as partition, key,
    if(answers is null, text_of_place('input', request), text_of_place('output', place)) as place,
    if(request is null, 'nothing', keys_text(wanted, wanted_total)) as expected,
    case
        when answers is null then 'no answer'
        when request is null then keys_text(last_number, last_total)
        when anomaly = 'duplicate-output' then answers || ' answers'
        else keys_text(number, total)
    end as observed,
    1 as comparisons
from named
