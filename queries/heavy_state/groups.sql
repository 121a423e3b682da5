select count(*) as groups, sum(quantity) as quantity, sum(price) as price, max(quantity) as most, min(price) as least
from (
  select l_orderkey, l_partkey, sum(l_quantity) as quantity, sum(l_extendedprice) as price
  from lineitem
  group by l_orderkey, l_partkey
) as grouped
