select one.l_shipmode as shipmode, other.l_shipmode as other_shipmode, count(*) as pairs
from lineitem as one
join lineitem as other on one.l_orderkey = other.l_orderkey
group by one.l_shipmode, other.l_shipmode
order by one.l_shipmode, other.l_shipmode
