select url_hash, event_date, count(*) as views
from hits
where
    counter_id = 62
    and event_date >= date '2013-07-01'
    and event_date <= date '2013-07-31'
    and is_refresh = 0
    and traffic_source_id in (-1, 6)
    and referer_hash = -4564793967837730197
group by url_hash, event_date
order by views desc
limit 10 offset 10
