select user_id, extract(minute from event_time) as minute_of_hour, search_phrase, count(*)
from hits
group by user_id, minute_of_hour, search_phrase
order by count(*) desc
limit 10
