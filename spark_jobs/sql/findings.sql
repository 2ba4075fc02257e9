-- The comparisons that show an anomaly, as witnesses.
select trial, anomaly, partition, key, []::int[] as ids, [place] as offsets, expected, observed
from results.comparisons where anomaly is not null
