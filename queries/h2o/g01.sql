select id1, sum(v1) as v1 from grouped group by id1
