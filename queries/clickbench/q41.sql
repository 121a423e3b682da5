select window_client_width, window_client_height, count(*) as views
from hits
where
    counter_id = 62
    and event_date >= date '2013-07-01'
    and event_date <= date '2013-07-31'
    and is_refresh = 0
    and dont_count_hits = 0
    and url_hash = -4564793967837730197
group by window_client_width, window_client_height
order by views desc
limit 10 offset 100
