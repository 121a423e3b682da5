select url, count(*) as views
from hits
where
    counter_id = 62
    and event_date >= date '2013-07-01'
    and event_date <= date '2013-07-31'
    and dont_count_hits = 0
    and is_refresh = 0
    and url <> ''
group by url
order by views desc
limit 10
