select count(*) as rows_out, sum(x.v1) as v1, sum(small.v2) as v2, min(small.id4) as id4
from x join small on x.id1 = small.id1
