select user_id, search_phrase, count(*)
from hits
group by user_id, search_phrase
limit 10
