select place, count(*) as parts
from (
  select row_number() over (partition by l_partkey order by l_shipdate) as place
  from lineitem
) as placed
group by place
order by place
