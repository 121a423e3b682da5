select search_phrase, min(url), min(title), count(*) as views, count(distinct user_id)
from hits
where title like '%Google%' and url not like '%.google.%' and search_phrase <> ''
group by search_phrase
order by views desc
limit 10
