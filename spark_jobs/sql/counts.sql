-- The table `counts`, of topologies other than the enumerator: a row for each trial, even one without any record.
select trial, count(*) filter (role = 'input') as records, count(*) filter (role = delivered) as outputs,
    count(distinct key) filter (role = 'input') as keys, 0 as ids
from trials left join records using (trial)
where "check" <> 'enumerator'
group by trial
