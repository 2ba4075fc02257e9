-- The promise `windows`: what an aggregation by windows of time gives. One comparison for each window, with the output
-- for it and the first breach of it, if there is one. A window is identified by its key, start and end. Suppressed, it
-- is emitted when it has closed, else at each update.
--
-- The fact `kind`: 0 tumbling, 1 hopping, 2 session, 3 sliding. The lower 22 bits of an output value are the sum, the
-- others the time at which its window starts; a session ends at the time of its result.

create temp macro result_text(result) as
    if(result.sum = 0, 'nothing', result.sum::varchar) || ' at ' || result.made;
create temp macro is_near(session, moment, gap) as
    session.start <= moment + gap and session.stop >= moment - gap;
create temp macro near_sessions(sessions, record) as
    list_filter(sessions, lambda one: one.stop > record.closed and is_near(one, record.moment, record.size));
create temp macro other_sessions(sessions, record) as
    list_filter(sessions, lambda one: one.stop > record.closed and not is_near(one, record.moment, record.size));
create temp macro joined_session(near, record) as {
    'start': least(record.moment, coalesce(list_min(list_transform(near, lambda one: one.start)), record.moment)),
    'stop': greatest(record.moment, coalesce(list_max(list_transform(near, lambda one: one.stop)), record.moment)),
    'sum': record.value + coalesce(list_sum(list_transform(near, lambda one: one.sum)), 0)::bigint
};
-- A record has begun a session or joined those that are near: these hold 0 when the new one has taken them in.
create temp macro updates_by(near, joined, record) as
    if(joined.start < joined.stop,
        list_transform(near, lambda one: {'start': one.start, 'stop': one.stop, 'sum': 0::bigint,
            'source': record.source}),
        [])
    || [{'start': joined.start, 'stop': joined.stop, 'sum': joined.sum, 'source': record.source}];
create temp macro after_record(state, near, others, joined, record) as
    if(joined.stop < record.closed, state, struct_update(state,
        sessions := others || [joined], updates := state.updates || updates_by(near, joined, record)));

with
stated as (
    select trial, facts['kind'] as kind, facts['size'] as size, facts['grace'] as grace,
        facts['suppressed'] = 1 as is_suppressed, facts['cogrouped'] = 1 as is_cogrouped, facts['limit'] as wait
    from trials  -- without the fact `kind` the drive failed at once: nothing is known of its windows
    where list_contains(promises, 'windows') and facts['kind'] is not null
),
inputs as (
    select s.*, r.partition, r.offset, r.key, r.timestamp as moment, place_of(r.partition, r.offset) as source,
        -- The aggregator of the second stream, which has the odd values, adds what they lack to 101.
        if(is_cogrouped and r.value % 2 <> 0, 101 - r.value, r.value) as value,
        -- The end of a window that slides is one of its times.
        max(r.timestamp) over in_order - grace - case kind when 2 then size when 3 then 1 else 0 end as closed
    from records r join stated s using (trial)
    where role = 'input'
    window in_order as (
        partition by r.trial, r.partition order by r.offset rows between unbounded preceding and current row
    )
),
-- Updates of windows that begin at fixed times: what they hold after each of their records.
placed as (
    select *, unnest(range(moment - moment % advance, moment - size, -advance)) as start, start + size as stop
    from (select *, if(kind = 1, size // 2, size) as advance from inputs where kind not in (2, 3))
),
of_times as (
    select trial, key, start, stop, "offset" as number, (sum(value) over so_far)::bigint as sum,
        max(moment) over so_far as made, source
    from placed where stop > closed
    window so_far as (partition by trial, partition, key, start order by "offset")
),
-- A window that slides ends with each record, and one begins just after it, if a record is in it. It is there from the
-- first record on by which one of both holds. A window and what begins it are in two buckets at most.
counted as (from inputs where kind = 3 and moment + size > closed),
starts as (
    select distinct trial, partition, key, size, unnest([moment - size, moment + 1]) as start from counted
),
near as (
    select c.*, start, moment >= start as is_inside
    from (select *, moment // (size + 2) as bucket from counted) c
        join (select *, unnest([(start - 1) // (size + 2), (start - 1) // (size + 2) + 1]) as bucket from starts) s
        using (trial, partition, key, bucket)
    where moment between start - 1 and start + c.size
),
slid as (
    select *, start + size as stop,
        min("offset") filter (moment = start + size) over of_window as ended,
        min("offset") filter (moment = start - 1) over of_window as begun,
        min("offset") filter (is_inside) over of_window as filled,
        (sum(value) filter (is_inside) over so_far)::bigint as sum, max(moment) filter (is_inside) over so_far as made
    from near
    window of_window as (partition by trial, partition, key, start),
        so_far as (partition by trial, partition, key, start order by "offset")
),
of_slides as (
    select trial, key, start, stop, "offset" as number, sum, made, source
    from (select *, least(ended, if(begun is null, null, greatest(begun, filled))) as there_from from slid)
    where ("offset" = there_from or (is_inside and "offset" > there_from)) and sum is not null and stop > closed
),
-- The records of a key are folded in their order, since whether one is too late hangs on the sessions that are there.
-- A record before which all sessions of its key have closed begins a run: runs are folded by themselves, since a list
-- that grows is copied with each record. Each element of the list has room for the state, the first one is that at the
-- begin.
session_runs as (
    select *, sum((newest is null or newest <= closed)::int) over (
            partition by trial, partition, key order by "offset" rows between unbounded preceding and current row
        ) as run
    from (
        select *, max(moment) over (
                partition by trial, partition, key order by "offset" rows between unbounded preceding and 1 preceding
            ) as newest  -- no session of the key ends later
        from inputs where kind = 2
    )
),
session_records as (
    select trial, partition, key, run,
        [{'moment': null::bigint, 'value': null::bigint, 'closed': null::bigint, 'size': null::bigint,
            'source': null::bigint, 'sessions': []::struct(start bigint, stop bigint, sum bigint)[],
            'updates': []::struct(start bigint, stop bigint, sum bigint, source bigint)[]}]
        || list({'moment': moment, 'value': value, 'closed': closed, 'size': size, 'source': source,
            'sessions': []::struct(start bigint, stop bigint, sum bigint)[],
            'updates': []::struct(start bigint, stop bigint, sum bigint, source bigint)[]}
                order by "offset") as in_order
    from session_runs group by trial, partition, key, run
),
folded_sessions as (
    select trial, key, list_reduce(in_order, lambda state, record: after_record(state,
        near_sessions(state.sessions, record), other_sessions(state.sessions, record),
        joined_session(near_sessions(state.sessions, record), record), record)).updates as updates
    from session_records
),
of_sessions as (
    select trial, key, u.start, u.stop, offset_of(u.source) as number, u.sum, u.stop as made, u.source
    from folded_sessions, unnest(updates) as listed (u)
),
updates as materialized (
    from of_times union all by name from of_slides union all by name from of_sessions
),
-- With a limit (the fact `limit`) each update waits until its task is so many ms older than it. One that comes
-- meanwhile takes its place. `until`: the record with which the wait of an update ends.
timed as (
    select trial, partition_of(source) as partition, key, start, stop, number, sum, made, source,
        made + wait as moment,
        null::bigint as over
    from updates join stated using (trial) where wait > 0
    union all by name
    select trial, partition, moment, "offset" as over from inputs where wait > 0
),
waiting as (
    select *, coalesce(min(over) over (
        partition by trial, partition order by moment range between current row and unbounded following
    ), 1::bigint << 62) as until
    from timed
    qualify over is null
),
waits as (
    select trial, key, start, stop,
        [{'number': null::bigint, 'sum': null::bigint, 'made': null::bigint, 'source': null::bigint,
            'until': -1::bigint,
            'ends': []::bigint[]}]
        || list({'number': number, 'sum': sum, 'made': made, 'source': source, 'until': until, 'ends': []::bigint[]}
            order by number, sum, made) as in_order
    from waiting group by trial, key, start, stop
),
held_back as (
    select trial, key, start, stop, one.number, one.sum, one.made, one.source, ends[position] as until,
        lead(one.number) over (partition by trial, key, start, stop order by position) as following
    from (
        select * exclude (in_order), in_order[2:] as held,
            list_reduce(in_order, lambda state, one: struct_update(state,
                until := if(one.number > state.until, one.until, state.until),
                ends := state.ends || [if(one.number > state.until, one.until, state.until)])).ends as ends
        from waits
    ), unnest(held) with ordinality as listed (one, position)
),
emitted as materialized (
    select trial, key, start, stop, number, sum, made, source, true as comes
    from updates anti join (from stated where wait > 0) using (trial)
    union all by name
    select trial, key, start, stop, number, sum, made, source,
        until < 1::bigint << 62 and (following is null or following > until) as comes
    from held_back
),
-- The results that are due of each window of the input, open or closed: all updates, or, suppressed, the last;
-- `source`: the place of the record that made the last; `why` none is due.
of_windows as (
    select trial, key, start, stop, coalesce(max(source) filter (comes), max(source)) as source,
        coalesce(list({'sum': sum, 'made': made} order by number, sum, made) filter (comes), []) as given
    from emitted group by trial, key, start, stop
),
ends as (select trial, partition, max(closed) as closed from inputs group by trial, partition),
due as (
    select trial, key, start, stop, source, if(is_suppressed, [given[-1]], given) as given,
        case
            when len(given) = 0 then 'its time is not up'
            when is_suppressed and given[-1].sum = 0 then 'another took it in'
            when is_suppressed and stop > closed then 'it has not closed'
        end as why
    from of_windows w join stated using (trial)
        join ends e on e.trial = w.trial and e.partition = partition_of(w.source)
),
results as (
    select trial, r.key, r.value >> 22 as start, if(kind = 2, r.timestamp, (r.value >> 22) + size) as stop,
        list({'place': place_of(r.partition, r.offset), 'sum': r.value & ((1 << 22) - 1), 'made': r.timestamp}
            order by r.partition, r.offset) as there
    from records r join stated using (trial)
    where role = 'output' group by all
),
compared as (
    select trial, key, start, stop, source, given, why, coalesce(there, []) as there,
        len(coalesce(there, [])) as number,
        if(why is not null, 0, len(given)) as wanted,
        list_filter(there, lambda one: partition_of(one.place) <> partition_of(source))[1] as astray,
        -- The first place at which a result differs from the one that is due.
        list_position(list_transform(list_zip(given, there), lambda pair:
            pair[1].sum = pair[2].sum and pair[1].made = pair[2].made), false) as differs
    from due full join results using (trial, key, start, stop)
),
looked_at as (
    select *, there[-1] as last, given[coalesce(differs, 1)] as wanted_result, there[coalesce(differs, 1)] as result
    from compared where wanted > 0 or number > 0
),
judged as (
    select *,
        case
            when given is null then 'unexpected-record'
            when wanted = 0 then 'early-result'
            when astray is not null then 'wrong-partition'
            when number < wanted then 'lost-record'
            when number > wanted then 'duplicate-output'
            when wanted_result.sum <> result.sum then 'wrong-value'
            when differs > 0 then 'wrong-timestamp'
        end as anomaly,
        case
            when anomaly = 'lost-record' then source
            when anomaly = 'wrong-partition' then astray.place
            when anomaly in ('wrong-value', 'wrong-timestamp') then result.place
            else last.place
        end as place,
        ' of the window from ' || start || ' to ' || stop as named,
        -- One result more than is due, which is the first that is due, once more.
        number = wanted + 1 and list_bool_and(list_transform(list_zip(there, given[1:1] || given), lambda pair:
            pair[1].sum = pair[2].sum and pair[1].made = pair[2].made)) as is_first_twice
    from looked_at
)
select trial, 'windows' as promise, anomaly, partition_of(place) as partition, key,
    text_of_place(if(anomaly = 'lost-record', 'input', 'output'), place) as place,
    case
        when anomaly = 'unexpected-record' then 'nothing'
        when anomaly = 'early-result' then 'nothing: ' || why
        when anomaly = 'wrong-partition' then 'partition ' || partition_of(source)
        when anomaly in ('lost-record', 'duplicate-output') then records_text(wanted) || named
        when anomaly is not null then result_text(wanted_result)
        else result_text(last)
    end as expected,
    case
        when anomaly = 'wrong-partition' then 'partition ' || partition_of(judged.place)
        when anomaly = 'lost-record' then records_text(number) || named
        when anomaly = 'duplicate-output' then records_text(number) || named
            || if(is_first_twice, ', the first one twice', '')
        when anomaly in ('wrong-value', 'wrong-timestamp') then result_text(result)
        else result_text(last)
    end as observed,
    1 as comparisons
from judged
