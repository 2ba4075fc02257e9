-- The promise `entries`: a store holds what its changelog says, entry by entry, as bytes, with timestamps and headers.
-- One comparison for each store that holds what it must, and one for each key in which another differs. `raw` is key
-- and value of a record in hexadecimal digits; a tombstone has the key alone.
--
-- What is older than the retention of a store it need not hold, seen from the youngest entry of its changelog. Of a
-- store of versions its history is compared, which goes back as far.

-- The versions that can be seen since `begin`: the one that is valid then, and each change after that. A deletion is a
-- version, `deleted`, unless there was nothing before.
create temp macro versions_by_time(versions) as list_sort(list_transform(versions, lambda one:
    {'timestamp': one.timestamp, 'value': if(coalesce(one.value, '') = '', 'deleted', one.value)}));
create temp macro versions_since(by_time, begin) as
    list_filter(by_time, lambda one: one.timestamp <= begin)[-1:]
        || list_filter(by_time, lambda one: one.timestamp > begin);
create temp macro without_repeated_deletions(since) as list_transform(
    list_filter(since, lambda one, i: one.value <> 'deleted' or (i > 1 and since[i - 1].value <> 'deleted')),
    lambda one: {'value': one.value, 'timestamp': one.timestamp, 'headers': null::varchar});
create temp macro history(versions, begin) as
    without_repeated_deletions(versions_since(versions_by_time(versions), begin));

-- Whether a store that keeps the values has others than are due.
create temp macro differ(held, due) as not list_contains(list_transform(held, lambda x: x is null), true)
    and held is distinct from due;
create temp macro entries_text(entries, anomaly) as coalesce(nullif(list_aggregate(list_transform(entries, lambda one:
    if(anomaly = 'wrong-entry-headers',
        one.value || ' with ' || coalesce(nullif(one.headers, ''), 'no header'),
        concat_ws(' at ', one.value, one.timestamp::varchar))), 'string_agg', ' and '), ''), 'nothing');
-- The integer in eight hexadecimal digits, with its sign.
create temp macro integer_of(digits) as
    if(len(digits) = 8, ('0x' || digits)::bigint - if(digits >= '8', 1::bigint << 32, 0), null);

with
dumps as (
    select trial, number::int - 1 as dump, of.* rename ("offset" as "end")
    from trials, unnest(entry_dumps) with ordinality as listed (of, number)
    where list_contains(promises, 'entries')
),
stores as (
    select trial, of.* from trials, unnest(entry_stores) as listed (of) where list_contains(promises, 'entries')
),
-- The records of the changelogs up to the offsets `end` which stores claim.
said as (
    select r.trial, d.store, d.partition, "end", r.offset, split_part(raw, ',', 1) as key,
        if(contains(raw, ','), split_part(raw, ',', 2), null) as value, timestamp, headers, form, retention
    from records r join (select distinct trial, store, partition, "end" from dumps) d
            on d.trial = r.trial and d.store || '-changelog' = r.role and d.partition = r.partition
                and r.offset < "end"
        join stores s on s.trial = d.trial and s.store = d.store
    where raw is not null
),
-- When the history of each store of versions begins.
begins as (
    select trial, store, partition, "end", max(timestamp) - max(retention) as begin
    from said where form = 'versions' group by trial, store, partition, "end"
),
last_of_key as (
    select trial, store, partition, "end", if(form = 'windows', key[:-9], key) as shown,
        arg_max({'value': value, 'timestamp': timestamp, 'headers': headers}, "offset") as entry,
        max("offset") as "offset",
        retention,
        case form  -- the start of a window, or the end of a session
            when 'windows' then ('0x' || key[-24:-9])::bigint
            when 'sessions' then ('0x' || key[-32:-17])::bigint
            else 0
        end as time
    from said where form <> 'versions' group by trial, store, partition, "end", key, form, retention
),
-- Of what must be held the entries under a key `shown`, the offset of the last record, and whether the store must keep
-- it.
folded as (
    select trial, store, partition, "end", shown, max("offset") as last, max(retention) as retention,
        max(time) as time,
        list(entry order by entry.value nulls first, entry.timestamp nulls first, entry.headers nulls first)
            filter (entry.value is not null) as due
    from last_of_key group by trial, store, partition, "end", shown
),
youngest as (
    select trial, store, partition, "end", max(time) as youngest
    from last_of_key group by trial, store, partition, "end"
),
aged as (
    select *, coalesce(timestamp >= max(timestamp) over before - retention, true) as is_in_time
    from said where form = 'versions'
    window before as (
        partition by trial, store, partition, "end" order by "offset" rows between unbounded preceding and 1 preceding
    )
),
versions as (
    select trial, store, partition, "end", key, timestamp, max("offset") as last, bool_or(is_in_time) as is_put,
        arg_max_null(value, "offset") filter (is_in_time) as value
    from aged group by trial, store, partition, "end", key, timestamp
),
due as (
    select trial, store, partition, "end", shown, due, last,
        retention = 0 or time > youngest - retention as is_kept
    from folded join youngest using (trial, store, partition, "end")
    union all
    select trial, store, partition, "end", key,
        history(list({'value': value, 'timestamp': timestamp}) filter (is_put), any_value(begin)), max(last), true
    from versions join begins using (trial, store, partition, "end") group by trial, store, partition, "end", key
),
held as (
    select trial, "offset"::int as dump, split_part(raw, ',', 1) as shown,
        list({'value': split_part(raw, ',', -1), 'timestamp': timestamp, 'headers': headers}
            order by split_part(raw, ',', -1), timestamp nulls first, headers nulls first) as held
    from records semi join dumps using (trial)
    where role like '%-entries' group by trial, dump, shown
),
both_sides as (
    select trial, dump, shown, last, is_kept, coalesce(due, []) as due,
        coalesce(if(begin is null, held, history(held, begin)), []) as held
    from (select * from due join dumps using (trial, store, partition, "end"))
        full join held using (trial, dump, shown)
        left join (from begins join dumps using (trial, store, partition, "end")) using (trial, dump)
),
compared as (
    select *, list_transform(due, lambda x: x.value) as due_values,
        list_transform(held, lambda x: x.value) as held_values,
        case
            when due_values = held_values then case
                when differ(list_transform(held, lambda x: x.timestamp), list_transform(due, lambda x: x.timestamp))
                    then 'wrong-entry-time'
                when differ(list_transform(held, lambda x: x.headers), list_transform(due, lambda x: x.headers))
                    then 'wrong-entry-headers'
            end
            when len(held) < len(due) and list_has_all(due_values, held_values) then if(is_kept, 'lost-entry', null)
            else 'wrong-entry'
        end as anomaly
    from both_sides
),
by_store as (
    select trial, dump, sum(len(held)) as entries, count(anomaly) as wrong from compared group by trial, dump
)
select trial, 'entries' as promise, null as anomaly, partition, null as key, title as place,
    coalesce(entries, 0) || ' entries' as expected, coalesce(entries, 0) || ' entries' as observed, 1 as comparisons
from dumps semi join stores using (trial, store) left join by_store using (trial, dump)
where coalesce(wrong, 0) = 0
union all
select trial, 'entries', anomaly, partition,
    -- The key of a record in a store of waiting records or of subscriptions stands behind others.
    integer_of(case form when 'waiting' then shown[19:26] when 'subscriptions' then shown[17:24] else shown[:8] end),
    if(last is null, title, place_text(store || '-changelog', partition, last)),
    entries_text(due, anomaly), entries_text(held, anomaly) || ': ' || title, 1
from compared join dumps using (trial, dump) join stores using (trial, store)
where anomaly is not null
