select
    region_id,
    sum(advertising_engine_id),
    count(*) as views,
    avg(resolution_width),
    count(distinct user_id)
from hits
group by region_id
order by views desc
limit 10
