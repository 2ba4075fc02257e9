-- The promise `deliveries`: a key is emitted as often as it goes in; of trials with `once`, once, however often it
-- went in. One comparison for each key. More than expected is an anomaly only if a trial is exactly-once.
with
keys as (
    select trial, key, count(*) filter (role = 'input') as inputs, count(*) filter (role <> 'input') as outputs,
        min(place_of(r.partition, r.offset)) filter (role = 'input') as input_place,
        max(place_of(r.partition, r.offset)) filter (role <> 'input') as output_place,
        if(once, least(inputs, 1), inputs) as wanted, any_value(delivered) as delivered,
        any_value(facts['exactly_once']) = 1 as exactly_once
    from records r join trials using (trial)
    where list_contains(promises, 'deliveries') and role in ('input', delivered)
    group by trial, key, once
)
select trial, 'deliveries' as promise,
    case
        when outputs < wanted then 'lost-record'
        when wanted = 0 then 'unexpected-record'
        when outputs > wanted and exactly_once then 'duplicate-output'
    end as anomaly,
    partition_of(if(outputs < wanted, input_place, output_place)) as partition, key,
    if(outputs < wanted, text_of_place('input', input_place), text_of_place(delivered, output_place)) as place,
    records_text(wanted) as expected, records_text(outputs) as observed, 1 as comparisons
from keys
