-- The promise `queries`: the answer to an interactive query holds what it must, and nothing that it must not. One
-- comparison for each answer, with what it must hold at least and at most. Its headers say the offsets of the changelog
-- before which its value was put at least (`floor`) and at most (`ceiling`), the offset of the input that was read, and
-- how it was asked.
create temp macro header_text(headers, name) as regexp_extract(headers, '(?:^| )' || name || '=([0-9a-f]*)', 1);
create temp macro header_number(headers, name) as try_cast('0x' || header_text(headers, name) as bigint);

with
judged as (
    select r.*, has_ended(facts) as has_ended
    from records r join trials using (trial) where list_contains(promises, 'queries')
),
answers as (
    select trial, partition, "offset", key, value, has_ended, header_number(headers, 'floor') as floor,
        header_number(headers, 'ceiling') as ceiling, header_number(headers, 'read') as read,
        decode(unhex(header_text(headers, 'how'))) as how
    from judged where role = 'answers'
),
-- The greatest value of a key up to each offset of a topic; a tombstone counts as 0.
histories as (
    select trial, role, key, "offset",
        max(coalesce(value, 0)) over (partition by trial, role, key order by "offset") as greatest
    from judged where role in ('last-changelog', 'input')
),
changelog as (from histories where role = 'last-changelog'),
input as (from histories where role = 'input'),
put as (select distinct trial, key, value, true as is_put from judged where role = 'input'),
-- What the key had before each of the offsets; 0 if there is none.
known as (
    select a.*, coalesce(least_put.greatest, 0) as floor_value, coalesce(most_put.greatest, 0) as ceiling_value,
        coalesce(was_read.greatest, 0) as read_value, coalesce(is_put, false) as is_put
    from answers a
        asof left join changelog least_put
            on a.trial = least_put.trial and a.key = least_put.key and a.floor > least_put.offset
        asof left join changelog most_put
            on a.trial = most_put.trial and a.key = most_put.key and a.ceiling > most_put.offset
        asof left join input was_read on a.trial = was_read.trial and a.key = was_read.key and a.read > was_read.offset
        left join put on a.trial = put.trial and a.key = put.key and a.value = put.value
),
named as (
    select *,
        case
            when value <> 0 and not is_put and has_ended then 'unexplained-answer'
            when value < greatest(floor_value, read_value) then 'stale-answer'
            when value > ceiling_value and ceiling < 9223372036854775807 and has_ended then 'early-answer'  -- no limit
        end as anomaly
    from known
)
select trial, 'queries' as promise, anomaly, partition, key, place_text('answers', partition, "offset") as place,
    case anomaly
        when 'unexplained-answer' then 'a value of the key'
        when 'early-answer' then ceiling_value || ' or earlier'
        else greatest(floor_value, read_value) || ' or later'
    end as expected,
    value || ', ' || how as observed, 1 as comparisons
from named
