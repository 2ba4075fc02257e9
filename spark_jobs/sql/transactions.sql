-- The promise `transactions`: each transaction of a changelog to which one producer at a time writes is committed. The
-- role `values-changelog` holds what was committed, `values-changelog-all` all that was written. A transaction ends
-- with a marker, which takes up an offset, so records with consecutive offsets are one transaction. One comparison for
-- each.
with
judged as (from records semi join (from trials where list_contains(promises, 'transactions')) using (trial)),
written as (
    select trial, partition, "offset",
        "offset" - row_number() over (partition by trial, partition order by "offset") as block
    from judged where role = 'values-changelog-all'
),
blocks as (
    select trial, partition, block, min("offset") as "offset", count(*) as size from written
        group by trial, partition, block
),
committed as (select trial, partition, "offset", true as is_committed from judged where role = 'values-changelog')
select trial, 'transactions' as promise, if(is_committed, null, 'aborted-by-throttle') as anomaly, partition,
    null as key,
    place_text('values-changelog', partition, "offset") as place, 'committed' as expected,
    if(is_committed, 'committed', 'aborted') || ', ' || records_text(size) as observed, 1 as comparisons
from blocks left join committed using (trial, partition, "offset")
