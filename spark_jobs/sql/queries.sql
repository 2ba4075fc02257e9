-- The promise `queries`: the answer to an interactive query holds what it must, and nothing that it must not. One
-- comparison for each answer, with what it must hold at least and at most. Its headers say the offsets of the
-- changelog before which its value was put at least (`floor`) and at most (`ceiling`), the offset of the input that
-- was read, and how it was asked.
create temp macro header_text(headers, name) as regexp_extract(headers, '(?:^| )' || name || '=([0-9a-f]*)', 1);
create temp macro header_number(headers, name) as ('0x' || header_text(headers, name))::bigint;

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
-- The greatest value of the key before each of the offsets; 0 if there is none.
by_changelog as (
    select a.trial, a.partition, a.offset, coalesce(max(c.value) filter (c.offset < floor), 0) as floor_value,
        coalesce(max(c.value) filter (c.offset < ceiling), 0) as ceiling_value
    from answers a left join judged c on c.trial = a.trial and c.key = a.key and c.role = 'last-changelog'
    group by a.trial, a.partition, a.offset
),
by_input as (
    select a.trial, a.partition, a.offset, coalesce(max(i.value) filter (i.offset < read), 0) as read_value,
        coalesce(bool_or(i.value = a.value), false) as is_put
    from answers a left join judged i on i.trial = a.trial and i.key = a.key and i.role = 'input'
    group by a.trial, a.partition, a.offset
),
named as (
    select *,
        case
            when value <> 0 and not is_put and has_ended then 'unexplained-answer'
            when value < greatest(floor_value, read_value) then 'stale-answer'
            when value > ceiling_value and ceiling < 9223372036854775807 and has_ended then 'early-answer'  -- no limit
        end as anomaly
    from answers join by_changelog using (trial, partition, "offset") join by_input using (trial, partition, "offset")
)
select trial, 'queries' as promise, anomaly, partition, key, place_text('answers', partition, "offset") as place,
    case anomaly
        when 'unexplained-answer' then 'a value of the key'
        when 'early-answer' then ceiling_value || ' or earlier'
        else greatest(floor_value, read_value) || ' or later'
    end as expected,
    value || ', ' || how as observed, 1 as comparisons
from named
