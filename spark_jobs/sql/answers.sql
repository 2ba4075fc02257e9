-- The promise `answers`: a request to delete is answered once, by true. One comparison for each key that was to be
-- deleted (the value 0 of the input), or was answered unasked. The values of the output are 1, true, and 0, false.
with
judged as (
    select r.*, place_of(partition, r.offset) as place
    from records r join trials using (trial) where list_contains(promises, 'answers')
),
requests as (select trial, key, place as request from judged where role = 'input' and value = 0),
given as (
    select trial, key, count(*) as number, max(place) as last, bool_or(value = 0) as is_false,
        string_agg(if(value = 1, 'true', 'false'), ', ' order by place) as said
    from judged where role = 'output' group by trial, key
)
select trial, 'answers' as promise,
    case
        when number is null then 'lost-record'
        when request is null then 'unexpected-record'
        when is_false then 'false-after-true'
        when number > 1 then 'duplicate-output'
    end as anomaly,
    partition_of(coalesce(last, request)) as partition, key,
    if(number is null, text_of_place('input', request), text_of_place('output', last)) as place,
    if(request is null, 'nothing', 'true') as expected, coalesce(said, 'nothing') as observed, 1 as comparisons
from requests full join given using (trial, key)
