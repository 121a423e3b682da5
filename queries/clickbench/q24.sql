select search_phrase
from hits
where search_phrase <> ''
order by event_time
limit 10
