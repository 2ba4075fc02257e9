-- Of a trial whose drive Kafka ended, facts say how far its topics count: `<role>_read/<partition>`, where the
-- independent reader looked; what was open there may have been decided since. And `<role>_end/<partition>`: the input
-- after it was never processed, which concerns what it should give, and not the transactions that were seen.
create temp table ends as
select trial, fact.value as "end", kind, split_part(fact.key, kind, 1) as role,
    split_part(fact.key, kind, 2)::int as partition
from (select trial, unnest(map_entries(facts)) as fact from trials), unnest(['_read/', '_end/']) as kinds (kind)
where contains(fact.key, kind);

delete from records using ends
where kind = '_read/' and records.trial = ends.trial and records.role = ends.role
    and records.partition = ends.partition and records."offset" >= "end";

insert into seen by name
select r.* exclude (headers, raw)
from records r join trials using (trial)
where list_contains(committed, role);

insert into seen by name
select trial, role, partition, "offset"
from undecoded join trials using (name)
where list_contains(committed, role);

delete from records using ends
where records.trial = ends.trial and records.role = ends.role
    and records.partition = ends.partition and records."offset" >= "end";
