select
    count(*) as rows_out,
    sum(x.v1) as v1,
    sum(big.v2) as v2,
    min(big.id6) as id6,
    max(big.id1) as id1,
    max(big.id2) as id2
from x join big on x.id3 = big.id3
