-- The promise `published`: the deletion of a key and its answer were both published, or neither, at the moment when
-- the process was killed (facts `changelog_end` and `output_end`). One comparison for each key that was to be deleted.
-- Nothing is compared if the deletion comes after the answer by design (fact `downstream`), or if the drive failed
-- before.
with
judged as (
    select trial, facts['changelog_end'] as changelog_end, facts['output_end'] as output_end
    from trials
    where list_contains(promises, 'published') and facts['downstream'] = 0 and facts['output_end'] is not null
),
requests as (
    select trial, key, r.partition, r.offset
    from records r semi join judged using (trial) where role = 'input' and value = 0
),
published as (
    select trial, key,
        min(r.offset) filter (role = 'records-changelog' and value is null and r.offset < changelog_end) as deletion,
        min(r.offset) filter (role = 'output' and r.offset < output_end) as answer
    from records r join judged using (trial)
    group by trial, key
)
select trial, 'published' as promise,
    if((deletion is null) <> (answer is null), 'changelog-output-mismatch', null) as anomaly, r.partition, key,
    place_text('input', r.partition, r.offset) as place,
    case
        when (deletion is null) <> (answer is null) then 'both or neither'
        when answer is not null then 'both'
        else 'neither'
    end as expected,
    if(deletion is null and answer is null, 'neither', concat_ws(', ',
        'deletion ' || place_text('records-changelog', r.partition, deletion),
        'answer ' || place_text('output', r.partition, answer))) as observed,
    1 as comparisons
from requests r left join published using (trial, key)
