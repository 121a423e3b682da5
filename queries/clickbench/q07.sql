select advertising_engine_id, count(*)
from hits
where advertising_engine_id <> 0
group by advertising_engine_id
order by count(*) desc
