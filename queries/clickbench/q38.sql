select url, count(*) as views
from hits
where
    counter_id = 62
    and event_date >= date '2013-07-01'
    and event_date <= date '2013-07-31'
    and is_refresh = 0
    and is_link <> 0
    and is_download = 0
group by url
order by views desc
limit 10 offset 100
