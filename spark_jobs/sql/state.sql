-- The promise `state`: after a restart a store holds what its changelog held as committed. One comparison for each key
-- that the store held, or its changelog at the kill. A store was looked at if the trial has the fact `<store>_end`:
-- where its changelog ended then; what it held is in the role `<store>-contents`. A key with a tombstone, and not in
-- the store, is not compared.
with
stores as (
    select trial, regexp_replace(fact.key, '_end$', '') as store, fact.value as "end"
    from (select trial, unnest(map_entries(facts)) as fact from trials where list_contains(promises, 'state'))
    where fact.key like '%\_end' escape '\'
),
keys as (
    select trial, store, key,
        arg_max_null(value, "offset") filter (role = store || '-changelog') as wanted,
        arg_max_null(value, "offset") filter (role = store || '-contents') as held,
        max("offset") filter (role = store || '-changelog') as changelog_offset,
        max("offset") filter (role = store || '-contents') as entry
    from records join stores using (trial)
    where (role = store || '-changelog' and "offset" < "end") or role = store || '-contents'
    group by trial, store, key
)
select trial, 'state' as promise,
    case
        when held is null then 'lost-state'
        when held is distinct from wanted then 'uncommitted-state'
    end as anomaly,
    0 as partition, key,
    if(changelog_offset is not null, place_text(store || '-changelog', 0, changelog_offset),
        place_text(store || '-contents', 0, entry)) as place,
    value_text(wanted) as expected, value_text(held) as observed, 1 as comparisons
from keys where wanted is not null or held is not null
