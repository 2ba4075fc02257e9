-- The work that the topology `enumerator` must have done, and where it did not do it.
--
-- The output is a pure function of the input's order within a partition: the n-th new key of partition p gets the ID n
-- * partitions + p. So the check is exact: replay the input, join, compare. A key that was sent to more than one
-- partition is expected to have its ID from the first of them.

create temp table of_enumerator as
select r.trial, role, r.partition, r.offset, place_of(r.partition, r.offset) as place, key, value::int as value,
    partitions
from records r join trials using (trial) where "check" = 'enumerator';

-- All that is known about each key that was sent, emitted or stored.
create temp table keys_of_enumerator as
with
sent as (
    select trial, partition, key, min(place) as place, count(*) as inputs, any_value(partitions) as partitions
    from of_enumerator where role = 'input' group by trial, partition, key
),
replayed as (
    select trial, key, place, inputs,
        (row_number() over (partition by trial, partition order by place) - 1) * partitions + partition as expected_id
    from sent
),
facts_of_keys as (
    select trial, key, inputs, place as input_place, expected_id from replayed
    union all by name
    select trial, key, place as output_place, value as id from of_enumerator where role = 'output'
    union all by name
    select trial, key, place as store_place, value as stored from of_enumerator where role = 'ids-changelog'
)
select trial, key, coalesce(sum(inputs), 0)::bigint as inputs, min(input_place) as input_place,
    min_by(expected_id, input_place) as expected_id, count(output_place) as outputs, min(output_place) as first_place,
    max(output_place) as last_place, min(id) as smallest_id, max(id) as largest_id,
    arg_max_null(id, output_place) as last_id,
    max(store_place) as stored_place, arg_max_null(stored, store_place) as stored_id
from facts_of_keys group by trial, key;

-- Which IDs the output gave to which keys. The records are looked at again only for keys with several IDs.
create temp table ids_of_keys as
select trial, key, smallest_id as id, first_place, outputs, inputs, expected_id, false as is_unstable
from keys_of_enumerator where smallest_id = largest_id
union all
select trial, key, value, min(place), count(*), inputs, expected_id, true
from of_enumerator join (from keys_of_enumerator where smallest_id <> largest_id) using (trial, key)
where role = 'output' group by trial, key, value, inputs, expected_id;

create temp table identities as
select trial, id, min(key) <> max(key) as is_shared from ids_of_keys group by trial, id;

create temp table assignments as
select trial, partition_of(first_place) as partition, key, id, offset_of(first_place) as first_offset, outputs, inputs,
    expected_id
from ids_of_keys;

create temp table changelogs as
with
-- Each record of the counter's changelog with the one before it; the output of partition p implies the counter
-- max((id - p) / partitions).
written as (
    select trial, partition, key, "offset" as changelog_offset, value as changelog_value,
        lag("offset") over in_order as previous_offset, lag(value) over in_order as previous_value,
        lead("offset") over in_order is null as last
    from of_enumerator where role = 'counter-changelog'
    window in_order as (partition by trial, partition order by "offset")
),
implied as (
    select trial, partition, true as last, max("offset") as output_offset,
        floor((max(value) - partition) / any_value(partitions))::bigint as output_value
    from of_enumerator where role = 'output' group by trial, partition
)
select trial, 'counter' as store, partition, coalesce(key, 0) as key, changelog_offset, changelog_value,
    previous_offset, previous_value, last, if(output_offset is null, null, partition) as output_partition,
    output_offset, output_value
from written full join implied using (trial, partition, last)
union all
-- For each key, the last ID in the changelog and the last one in the output; a tombstone counts as no ID.
select trial, 'ids', partition_of(coalesce(stored_place, last_place)), key, offset_of(stored_place), stored_id,
    null, null, true, partition_of(last_place), offset_of(last_place), last_id
from keys_of_enumerator where stored_id is not null or last_id is not null;

create temp table suspects as
select a.*, coalesce(is_shared, false) as is_shared
from ids_of_keys a left join identities using (trial, id)
where is_shared or is_unstable or id <> expected_id;

-- Of many keys or places five are named.
create temp macro listing(number, noun, named) as
    number || ' ' || noun || ': ' || list_aggregate(list_transform(named, lambda x: x::varchar), 'string_agg', ', ');

create temp table enumerator_findings as
select trial, 'duplicate-id' as anomaly, partition_of(min(first_place)) as partition, null::int as key, [id] as ids,
    list(text_of_place('output', first_place) order by first_place, key)[:5] as offsets, 'one key' as expected,
    listing(count(*), 'keys', list(key order by first_place, key)[:5]) as observed
from suspects where is_shared group by trial, id
union all
select trial, 'unstable-id', partition_of(min(first_place)), key, list(id order by first_place, id),
    list(text_of_place('output', first_place) order by first_place, id), 'one ID',
    listing(count(*), 'IDs', list(id order by first_place, id))
from suspects where is_unstable group by trial, key
union all
-- Its own and stable, but not the one that the input determines. A key that is not in the input has no right ID.
select trial, 'wrong-id', partition_of(first_place), key, [id], [text_of_place('output', first_place)],
    expected_id::varchar, id::varchar
from suspects where not is_unstable and not is_shared and id <> expected_id
union all
select trial,
    case when inputs > outputs then 'lost-record' when inputs = 0 then 'unexpected-record' else 'duplicate-output' end,
    partition_of(if(inputs > outputs, input_place, last_place)), key, [],
    [if(inputs > outputs, text_of_place('input', input_place), text_of_place('output', last_place))],
    records_text(inputs), records_text(outputs)
from keys_of_enumerator where inputs <> outputs
union all
-- A tombstone is less than any value; what follows it starts afresh.
select trial, 'counter-regression', partition, key, [],
    [place_text('counter-changelog', partition, previous_offset),
        place_text('counter-changelog', partition, changelog_offset)],
    'more than ' || previous_value, value_text(changelog_value)
from changelogs
where store = 'counter' and previous_value is not null and changelog_offset is not null
    and (changelog_value is null or changelog_value <= previous_value)
union all
select trial, 'changelog-output-mismatch', partition, key,
    if(store = 'ids', list_filter([changelog_value, output_value], lambda x: x is not null), []),
    list_filter([place_text(store || '-changelog', partition, changelog_offset),
        place_text('output', output_partition, output_offset)], lambda x: x is not null),
    value_text(output_value), value_text(changelog_value)
from changelogs where last and changelog_value is distinct from output_value;

create temp table enumerator_counts as
select trial, coalesce(records, 0) as records, coalesce(outputs, 0) as outputs, coalesce(keys, 0) as keys,
    coalesce(ids, 0) as ids
from trials
    left join (
        select trial, sum(inputs)::bigint as records, sum(outputs)::bigint as outputs,
            count(*) filter (inputs > 0) as keys
        from keys_of_enumerator group by trial
    ) using (trial)
    left join (select trial, count(*) as ids from identities group by trial) using (trial)
where "check" = 'enumerator';
