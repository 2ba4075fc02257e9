-- The promises `atomicity`, `isolation`, `fencing` and `ownership`: transactions, from the brokers' log segments.
--
-- A part is what one transaction wrote to one log (trial, role, partition, producer, number). In each log, a
-- producer's transactions follow one another, each ended by a marker. So the coordinator's decisions about
-- transactions in a log match them one to one. A transaction is known by its producer and the place of its `decision`,
-- '' while there is none.

-- What an input record makes each topology (`streams_app`) write into the same partition: `each` one, the `first` of
-- its key, one that asks to `delete`, a `version` of a table, one that is `taken`, or one that is `skipped` as poison;
-- under its own key or a fixed one. `once`: an entry of a store, which may be cached, so only the last record of a key
-- counts. `judged`: how its value follows from that of the input, as the `value` itself, as the `change` that a put or
-- a delete makes, or as a `version`; null if another promise judges it.
create temp table effects as
from (values
    ('enumerator', 'output', 'each', false, null::int, null),
    ('enumerator', 'ids-changelog', 'first', true, null, null),
    ('enumerator', 'counter-changelog', 'first', true, 0, null),
    ('copy', 'output', 'each', false, null, null),
    ('counting', 'output', 'each', false, null, null),
    ('counting', 'last-changelog', 'each', true, null, 'value'),
    ('interactive-queries', 'output', 'each', false, null, null),
    ('interactive-queries', 'last-changelog', 'each', true, null, 'value'),
    ('dedup', 'output', 'first', false, null, null),
    ('dedup', 'seen-changelog', 'first', true, null, 'value'),
    ('dead-letters', 'output', 'taken', false, null, null),
    ('dead-letters', 'dead-letters', 'skipped', false, null, null),
    ('deleter', 'output', 'delete', false, null, null),
    ('deleter', 'records-changelog', 'each', true, null, 'change'),
    ('as-of-join', 'output', 'each', false, null, null),
    ('as-of-join', 'versions-changelog', 'version', true, null, 'version'),
    ('global-join', 'output', 'each', false, null, null),
    ('scans', 'output', 'delete', false, null, null),
    ('scans', 'records-changelog', 'each', true, null, 'change'),
    ('values', 'values-changelog', 'each', true, null, 'value')
) as _ ("check", role, condition, once, fixed_key, judged);

-- Of the trials, without a queue of dead letters and without output that comes later than its input is committed.
create temp table wanted as
select trial, role, condition, e.once, fixed_key, judged, coalesce(facts['punctuated'] = 1, false) as punctuated
from trials join effects e using ("check")
where (role <> 'dead-letters' or facts['queue'] = 1) and (role <> 'output' or facts['waits'] is distinct from 1);

create temp macro outcome_of(kind) as case
    when kind is null then 'open'
    when kind in ('COMMIT', 'PrepareCommit') then 'committed'
    else 'aborted'
end;

create temp table numbered as
select *, kind in ('COMMIT', 'ABORT') as is_marker, coalesce(sum(is_marker::int) over before, 0)::bigint as number
from entries where role <> '__transaction_state' and transactional and producer >= 0
window before as (
    partition by trial, role, partition, producer order by first rows between unbounded preceding and 1 preceding
);

create temp table parts as
with
ended as (
    select trial, role, partition, producer, number,
        min(first) filter (not is_marker) as begin, max(first) filter (is_marker) as marker_offset,
        max(kind) filter (is_marker) as marker, sum(last - first + 1) filter (not is_marker) as records
    from numbered group by all
),
decisions as (
    select trial, of_role as role, of_partition as partition, producer,
        row_number() over (
            partition by trial, of_role, of_partition, producer order by partition, first
        ) - 1 as number,
        place_text(role, e.partition, first) as decided_at, first as decided_offset, kind as decided_kind
    from entries e where e.role = '__transaction_state' and of_role is not null
)
select trial, role, partition, producer, number, coalesce(decided_at, '') as decision,
    outcome_of(if(decided_at is null, marker, decided_kind)) as decided, coalesce(begin, marker_offset) as held,
    if(held is null, decided_at, place_text(role, partition, held)) as place,
    coalesce(held, decided_offset) as first_offset, marker_offset, outcome_of(marker) as outcome,
    coalesce(records, 0)::bigint as records
from ended full join decisions using (trial, role, partition, producer, number);

-- Offsets are cut into stretches, about as long as a batch, so that a record is compared with the few intervals of its
-- own stretch: nothing must be sorted. Intervals do not overlap.
create temp macro stretch_of(number) as number >> 7;
create temp macro cut_into_stretches(intervals) as table
select *, unnest(range(stretch_of(first), stretch_of(last) + 1)) as stretch from query_table(intervals);

create temp table batches as
select trial, role, partition, first, last, producer, number from numbered where kind = 'data'
union all
select trial, role, partition, first, last, producer, -1 from entries where kind = 'data' and not transactional;

-- The records that were seen, each with its part: number -1 if it is in no transaction, null if no batch holds it.
create temp table assigned as
select s.*, producer, number
from seen s left join cut_into_stretches('batches') b
    on b.trial = s.trial and b.role = s.role and b.partition = s.partition and stretch = stretch_of(s.offset)
        and s.offset between first and last;

create temp table tallied as
select trial, role, partition, producer, number, count(*) as visible, count(key) as decoded, min("offset") as begin
from assigned group by all;

-- The positions in the input that were committed: the inputs from `first` to `last`, by which transaction, and when.
create temp table positions as
select trial, producer, decision, n.partition as at_partition, n.first as at_offset, n.timestamp as committed_at,
    of_partition as partition,
    coalesce(max(position) over (
        partition by trial, of_partition order by n.partition, n.first rows between unbounded preceding and 1 preceding
    ), 0) as first,
    position - 1 as last
from numbered n join parts p using (trial, role, partition, producer, number)
where kind = 'position' and of_role = 'input' and decided = 'committed';

create temp table ranges as from positions where last >= first;

-- How many effects each committed transaction must have in each log, and how many it has. Where only the last record
-- of a key counts, another value than the one that is due is one that is missing and one that is foreign. A record
-- that a punctuator wrote has no input that causes it.
create temp table pairs as
with
inputs_of_transactions as (
    select s.trial, s.partition, s.offset, s.key, s.value, p.producer, p.decision,
        -- The first record of a key may not have been committed; the second one does not become the first by that.
        min(s.offset) over (partition by s.trial, s.partition, s.key) = s.offset as is_first
    from seen s left join cut_into_stretches('ranges') p
        on p.trial = s.trial and p.partition = s.partition and stretch = stretch_of(s.offset)
            and s.offset between first and last
    where s.role = 'input' and s.key is not null
),
due as (
    select i.trial, producer, decision, role, partition, "offset", coalesce(fixed_key, key) as key, once,
        case judged
            when 'value' then value
            when 'change' then nullif(value, 0)  -- 0 deletes
            when 'version' then if(value < 0, -value, null)
        end as value
    from inputs_of_transactions i join wanted using (trial)
    where producer is not null and case condition
        when 'first' then is_first
        when 'delete' then value = 0
        when 'version' then value <= 0
        when 'taken' then value >= 0
        when 'skipped' then value < 0
        else true
    end
),
written as (
    select a.trial, producer, decision, role, partition, a.offset, key, once, if(judged is null, null, value) as value
    from assigned a join parts using (trial, role, partition, producer, number)
        join (select distinct trial, role, once, judged, punctuated from wanted) using (trial, role)
    where decided = 'committed' and not (punctuated and key < 0)
),
both_sides as (select *, true as is_due from due union all by name select *, false as is_due from written),
counted as (
    select trial, producer, decision, role, partition, key, bool_or(once) as once,
        if(bool_or(once), least(count(*) filter (is_due), 1), count(*) filter (is_due)) as due,
        if(bool_or(once), least(count(*) filter (not is_due), 1), count(*) filter (not is_due)) as written,
        arg_max_null(value, "offset") filter (is_due) as due_value,
        arg_max_null(value, "offset") filter (not is_due) as written_value
    from both_sides group by trial, producer, decision, role, partition, key
),
compared as (
    select *, (once and due > 0 and written > 0 and due_value is distinct from written_value)::int as others
    from counted
)
select trial, producer, decision, role, partition, sum(due)::bigint as due, sum(written)::bigint as written,
    sum(greatest(due - written, 0) + others)::bigint as missing,
    sum(greatest(written - due, 0) + others)::bigint as foreign_, min(key) filter (due <> written or others > 0) as key
from compared group by trial, producer, decision, role, partition;

create temp table transactions as
with
known as (
    -- It is not for the promise `atomicity` to report what was not seen or not decoded.
    select p.*, coalesce(visible, 0) as visible, pairs.* exclude (trial, producer, decision, role, partition),
        (trial, role) in (select (trial, role) from wanted) and coalesce(decoded, 0) = records as is_known
    from parts p left join tallied using (trial, role, partition, producer, number)
        left join pairs using (trial, producer, decision, role, partition)
),
first_position as (
    select trial, producer, decision, min({'partition': at_partition, 'first': at_offset}) as position
    from positions group by trial, producer, decision
)
select trial, producer, decision, decided, role, partition, place, first_offset, marker_offset, outcome, records,
    visible,
    if(is_known, coalesce(due, 0), null) as due, if(is_known, coalesce(written, 0), null) as written,
    if(is_known, coalesce(missing, 0), null) as missing, if(is_known, coalesce(foreign_, 0), null) as "foreign",
    if(is_known, key, null) as key
from known
union all
-- Where something is due from a transaction that wrote nothing there; the place is that of the position it commits.
select trial, producer, decision, 'committed', role, partition,
    place_text('__consumer_offsets', position.partition, position.first), position.first, null, 'nothing', 0, 0,
    due, written, missing, foreign_, key
from pairs anti join parts using (trial, producer, decision, role, partition)
    join first_position using (trial, producer, decision);

create temp macro effects_text(number) as if(number = 1, '1 effect', number || ' effects');
create temp macro visible_text(number) as records_text(number) || ' visible';

-- Each transaction, by its first part that is wrong or else by its first; and what was written outside of any.
create temp table atomicity as
with judged as (
    select t.*, decided = 'committed' and due is not null as is_counted,
        case
            when outcome = 'open' then if(facts['ended'] = 1, 'hanging-transaction', null)
            when outcome <> decided or missing > 0 or "foreign" > 0 then 'torn-transaction'
        end as anomaly
    from transactions t join trials using (trial)
)
select trial, anomaly, partition, key, place,
    case
        when outcome = 'open' and decision = '' then 'committed or aborted'
        when outcome = 'nothing' or (outcome = 'committed' and is_counted) then 'committed, ' || effects_text(due)
        else decided
    end as expected,
    case
        when outcome = 'open' then 'open, ' || records_text(records)
        when outcome = 'committed' and is_counted then concat_ws(', ', 'committed', effects_text(written),
            if(missing > 0, missing || ' missing', null), if("foreign" > 0, "foreign" || ' foreign', null))
        else outcome
    end as observed
from judged
qualify row_number() over (
    partition by trial, producer, decision order by anomaly is null, role, partition, first_offset
) = 1
union all
select trial, 'torn-transaction', partition, null, place_text(role, partition, first), 'in a transaction', 'outside'
from entries
where not transactional and (kind = 'position' or (kind = 'data' and role not in ('input', 'answers')));

-- Each part of a transaction, what each log holds outside of any, and the records that no batch holds.
create temp table isolation as
with
outside as (
    select trial, role, partition, min(first) as first_offset, sum(last - first + 1) as due
    from entries where kind = 'data' and not transactional group by all
),
visible_outside as (
    select trial, role, partition, sum(visible) as visible from tallied where number = -1 group by all
),
compared as (
    select trial, role, partition, first_offset, if(outcome = 'committed', records, 0) as due, visible
    from transactions where role <> '__consumer_offsets' and records > 0
    union all
    select trial, role, partition, first_offset, due, coalesce(visible, 0)
    from outside left join visible_outside using (trial, role, partition)
    union all
    select trial, role, partition, begin, 0, visible from tallied where number is null
)
select trial, if(due <> visible, 'isolation-breach', null) as anomaly, partition, null::int as key,
    place_text(role, partition, first_offset) as place, visible_text(due) as expected,
    visible_text(visible) as observed
from compared;

-- Each producer in each log: its epochs grow, and in each the sequences follow one another. The group coordinator
-- writes positions for the producer, without its sequences; neither have markers any.
create temp table fencing as
with
before_each as (
    select *, max(epoch) over before as reached,
        last_value(
            if(kind = 'data', {'epoch': epoch, 'sequence': last_sequence}, null) ignore nulls
        ) over before as previous
    from entries where role <> '__transaction_state' and producer >= 0
    window before as (
        partition by trial, role, partition, producer order by first rows between unbounded preceding and 1 preceding
    )
),
followed as (
    select *, coalesce(epoch < reached, false) as falls,
        -- After the highest sequence comes 0, as at the begin of an epoch.
        if(previous.epoch = epoch and previous.sequence <> 2147483647, previous.sequence + 1, 0) as following,
        falls or (kind = 'data' and sequence <> following) as is_breach
    from before_each
)
select trial, if(is_breach, 'fencing-breach', null) as anomaly, partition, null::int as key,
    place_text(role, partition, first) as place,
    case when falls then 'epoch ' || reached || ' or more' when is_breach then 'sequence '
        || following else 'growing' end
        as expected,
    case when falls then 'epoch ' || epoch when is_breach then 'sequence ' || sequence else 'growing' end as observed
from followed
qualify row_number() over (partition by trial, role, partition, producer order by not is_breach, first) = 1
union all
-- Each partition of the input: the positions that are committed never fall; `first` is the highest one before.
select trial, if(last + 1 < first, 'fencing-breach', null), partition, null,
    place_text('__consumer_offsets', at_partition, at_offset),
    if(last + 1 < first, 'position ' || first || ' or more', 'growing'),
    if(last + 1 < first, 'position ' || (last + 1), 'growing')
from positions
qualify row_number() over (partition by trial, partition order by last + 1 >= first, at_partition, at_offset) = 1;

-- Each partition of the input, by the longest time in which it was idle, of several the first: from the last committed
-- position that moved, or from when the first record behind that was sent if this was later, until the next commit
-- that moves it. The times of commits are those that brokers gave their records in `__consumer_offsets`. The time
-- before the first commit does not count. The fact `idle` is the number of ms for which a partition may be idle;
-- trials without it are not judged.
create temp table ownership as
with
judged as (
    select trial, facts['idle'] as allowed, unnest(range(facts['partitions']))::int as partition
    from trials where facts['idle'] is not null and len(committed) > 0
),
moves as (
    select trial, partition, first, committed_at,
        lag(committed_at) over (partition by trial, partition order by at_partition, at_offset) as before
    from positions where last >= first
),
waits as (
    select trial, m.partition, first, committed_at - greatest(before, s.timestamp) as ms
    from moves m join seen s using (trial, partition)
    where before is not null and s.role = 'input' and s.offset = first
    qualify row_number() over (partition by trial, m.partition order by ms desc, first) = 1
)
select trial, if(ms > allowed, 'idle-partition', null) as anomaly, partition, null::int as key,
    place_text('input', partition, coalesce(first, 0)) as place,
    format('records wait for {:,} ms at most', allowed) as expected,
    if(ms is null, 'none waited', format('they waited for {:,} ms', ms)) as observed
from judged left join waits using (trial, partition);

create temp table segment_comparisons as
select *, 1 as comparisons
from (
    select 'atomicity' as promise, * from atomicity
    union all by name select 'isolation' as promise, * from isolation
    union all by name select 'fencing' as promise, * from fencing
    union all by name select 'ownership' as promise, * from ownership
);
