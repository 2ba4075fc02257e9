-- The input of each trial, and for topologies that join or group it what it `gives` instead: the results that the
-- order of the input determines. `gives` is null for other topologies.

create temp table stated as
select trial, "check", coalesce(facts['added'], 0) as added, coalesce(facts['join'], 0) as kind,
    coalesce(facts['retention'], 0) as retention
from trials;

create temp view inputs_of_topologies as
select r.*, "check", added, kind, retention, place_of(r.partition, r.offset) as place
from records r join stated using (trial) where role = 'input';

-- global-join: what is emitted for each record, `value << 32 | entry`. An entry of the table has a value below 0, and
-- its own number is emitted with the value 0. Another record is emitted with the number of the last entry of the key
-- before its value, or with 0. The processor of a global store adds the fact `added` to an entry.
create temp table given_by_global_join as
with
records_of_both as (from inputs_of_topologies where "check" = 'global-join'),
entries_of_table as (
    select trial, key::bigint + 1 as value, max_by(added - value, "offset") as entry
    from records_of_both where value < 0 group by trial, key
)
select r.*, if(value < 0, -value, (value << 32) + coalesce(entry, 0)) as gives
from records_of_both r left join entries_of_table using (trial, value);

-- foreign-key-join: the table that the results must make. The last record of each key of the left table stays, with
-- its result `left << 32 | right` and the later of the two timestamps. Without a right record the result is null, or
-- in a left join (fact `join`) the left one alone. Records of the right table have values below 0. The value of a left
-- one has the number after the key that it asks for below 1,000,000, 0 for none; 999,999 says that it is deleted.
create temp table given_by_foreign_key_join as
with
last_of_key as (
    from inputs_of_topologies where "check" = 'foreign-key-join'
    qualify row_number() over (partition by trial, key order by "offset" desc) = 1
),
right_side as (
    select trial, key::bigint + 1 as asked, -value as other, timestamp as changed from last_of_key where value < 0
),
left_side as (
    select *, value <> 999_999 as is_there, if(value <> 999_999, nullif(value % 1_000_000, 0), null) as asked
    from last_of_key where value >= 0
)
select l.* exclude (is_there, asked) replace (greatest(timestamp, changed) as timestamp),
    case when other is not null or (kind > 0 and is_there) then (value << 32) + coalesce(other, 0) end as gives
from left_side l left join right_side using (trial, asked);

-- as-of-join: what is emitted for each record. A version has a value below 0, a deletion 0, and its own number is
-- emitted with the value 0. Another record is emitted with the version of its key that began last, and not after the
-- record's time, of those before it in its partition: `value << 32 | version`, 0 for none. A version that is older
-- than the youngest one before it by more than the fact `retention` does not count, and a record that is as old gets
-- only a version after which none begins. Where that fact is 0, the version that was put last is emitted.
create temp table given_by_as_of_join as
with
timed as (
    select *, if(retention > 0, timestamp, 0) as began from inputs_of_topologies where "check" = 'as-of-join'
),
aged as (
    select *, coalesce(began < max(began) filter (value <= 0) over before - retention, false) as is_old
    from timed
    window before as (partition by trial, partition order by "offset" rows between unbounded preceding and 1 preceding)
),
versions as (
    select trial, partition, key, began, place as put, -value as version from aged where value <= 0 and not is_old
),
found as (
    select a.trial, a.place, max({'began': v.began, 'put': put}) as newest,
        max({'began': v.began, 'put': put}) filter (v.began <= a.began) as valid,
        max_by(version, {'began': v.began, 'put': put}) filter (v.began <= a.began) as version
    from aged a join versions v using (trial, partition, key)
    where value > 0 and put < place
    group by a.trial, a.place
)
select a.* exclude (began, is_old),
    case
        when value <= 0 then -value
        when valid is not null and (not is_old or valid = newest) then (value << 32) + version
        else value << 32
    end as gives
from aged a left join found using (trial, place);

-- table-join: the table that the output must make. The last record of each key stays, with the result of the join as
-- its last values give it; the value 1 deletes in the left table, -1 in the right one. For each total, the last digit
-- of a key, there is one record more, with the latest timestamp of the records that changed a result. Its value has
-- the last three digits of the sum of each group of keys with the same last digits, and that sum has both sides of all
-- results.
create temp table given_by_table_join as
with
sides as (
    select *,
        -- the value of one table until now; 0 if there is none, or it is deleted
        coalesce(last_value(if(value > 0, value, null) ignore nulls) over so_far, 0) as held_left,
        coalesce(last_value(if(value < 0, -value, null) ignore nulls) over so_far, 0) as held_right
    from inputs_of_topologies where "check" = 'table-join'
    window so_far as (partition by trial, key order by place rows between unbounded preceding and current row)
),
joined as (
    select * exclude (held_left, held_right),
        if(held_left = 1, 0, held_left) as of_left, if(held_right = 1, 0, held_right) as of_right,
        case kind
            when 2 then of_left > 0 or of_right > 0  -- outer
            when 1 then of_left > 0  -- left
            else of_left > 0 and of_right > 0
        end as is_result,
        if(is_result, (of_left << 32) + of_right, null) as gives
    from sides
),
changes as (select *, lag(gives) over (partition by trial, key order by place) as before from joined),
last_of_key as (
    from changes qualify row_number() over (partition by trial, key order by place desc) = 1
),
group_sums as (
    select trial, key % 5_000 as of_group, sum(of_left + of_right) filter (is_result) as added
    from last_of_key group by trial, of_group
),
totals as (
    select trial, of_group % 10 + 1_000_000 as key, nullif(coalesce(sum(added % 1_000), 0), 0)::bigint as gives
    from group_sums group by trial, of_group % 10
),
changed as (
    select * exclude (key, gives, timestamp), key % 10 + 1_000_000 as key,
        max(timestamp) over (partition by trial, key % 10) as timestamp
    from changes where gives is not null or before is not null
    qualify row_number() over (partition by trial, key % 10 order by place desc) = 1
)
select * exclude (of_left, of_right, is_result, before) from last_of_key
union all by name
select c.* exclude (of_left, of_right, is_result, before), gives from changed c join totals using (trial, key);

-- grouped-table: the table of sums that the results must make. The last record of each group stays, under the group,
-- which is the key's remainder by 100. It gives the sum of the last values of the group's keys, with the latest
-- timestamp of all.
create temp table given_by_grouped_table as
with
last_of_key as (
    select * replace (max(timestamp) over (partition by trial, key) as timestamp)
    from inputs_of_topologies where "check" = 'grouped-table'
    qualify row_number() over (partition by trial, key order by "offset" desc) = 1
)
select * replace (key % 100 as key, max(timestamp) over of_group as timestamp),
    (sum(value) over of_group)::bigint as gives
from last_of_key
window of_group as (partition by trial, key % 100)
qualify row_number() over (partition by trial, key % 100 order by place desc) = 1;

create temp table inputs as
select * exclude ("check", added, kind, retention, place)
from (
    from given_by_global_join
    union all by name from given_by_foreign_key_join
    union all by name from given_by_as_of_join
    union all by name from given_by_table_join
    union all by name from given_by_grouped_table
    union all by name
    select *, null::bigint as gives from inputs_of_topologies
    where "check" not in ('global-join', 'foreign-key-join', 'as-of-join', 'table-join', 'grouped-table')
);
