select count(*) as rows_out, sum(x.v1) as v1, sum(medium.v2) as v2, min(medium.id5) as id5, max(medium.id1) as id1
from x join medium on x.id2 = medium.id2
