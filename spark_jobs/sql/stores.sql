-- The promise `stores`: what a store holds at the end is its changelog up to the offset that it claims. One comparison
-- for each store that holds what it must, and one for each key in which another differs. The dumps of a trial say
-- which stores were written, and what they claim. A tombstone deletes, so a key that has one and is not in the store
-- is fine.
with
claimed as (
    select trial, number::int - 1 as dump, of.* rename ("offset" as "end")
    from trials, unnest(dumps) with ordinality as listed (of, number)
    where list_contains(promises, 'stores')
),
wanted as (
    select c.trial, dump, key, arg_max_null(value, r.offset) as wanted, max(r.offset) as changelog_offset
    from records r join claimed c
        on c.trial = r.trial and r.role = c.store || '-changelog' and c.partition = r.partition and r.offset < "end"
    group by c.trial, dump, key
),
held as (
    select r.trial, dump, key, value as held
    from records r join claimed c on c.trial = r.trial and r.role = c.store || '-dump' and c.dump = r.offset
),
compared as (
    select trial, dump, key, wanted, held, changelog_offset, wanted is distinct from held as differs
    from wanted full join held using (trial, dump, key)
),
entries_of_store as (
    select trial, dump, count(*) filter (held is not null) as entries, bool_or(differs) as differs
    from compared group by trial, dump
)
select trial, 'stores' as promise, null as anomaly, partition, null as key, title as place,
    coalesce(entries, 0) || ' entries' as expected, coalesce(entries, 0) || ' entries' as observed, 1 as comparisons
from claimed left join entries_of_store using (trial, dump)
where not coalesce(differs, false)
union all
select trial, 'stores', if(task_type = 'standby', 'wrong-standby', 'wrong-store'), partition, key,
    if(changelog_offset is null, title, place_text(store || '-changelog', partition, changelog_offset)),
    value_text(wanted), value_text(held) || ': ' || title, 1
from compared join claimed using (trial, dump)
where differs
