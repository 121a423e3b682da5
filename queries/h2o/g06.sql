select id4, id5, median(v3) as median_v3, stddev(v3) as stddev_v3 from grouped group by id4, id5
