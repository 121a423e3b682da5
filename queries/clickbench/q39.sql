select
    traffic_source_id,
    search_engine_id,
    advertising_engine_id,
    case when search_engine_id = 0 and advertising_engine_id = 0 then referer else '' end as source,
    url as destination,
    count(*) as views
from hits
where
    counter_id = 62
    and event_date >= date '2013-07-01'
    and event_date <= date '2013-07-31'
    and is_refresh = 0
group by traffic_source_id, search_engine_id, advertising_engine_id, source, destination
order by views desc
limit 10 offset 100
