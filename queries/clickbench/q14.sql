select search_engine_id, search_phrase, count(*) as views
from hits
where search_phrase <> ''
group by search_engine_id, search_phrase
order by views desc
limit 10
