select id2, id4, power(corr(v1, v2), 2) as r2 from grouped group by id2, id4
