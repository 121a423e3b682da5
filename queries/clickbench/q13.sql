select search_phrase, count(distinct user_id) as users
from hits
where search_phrase <> ''
group by search_phrase
order by users desc
limit 10
