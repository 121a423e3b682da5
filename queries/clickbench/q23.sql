select *
from hits
where url like '%google%'
order by event_time
limit 10
