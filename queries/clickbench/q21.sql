select search_phrase, min(url), count(*) as views
from hits
where url like '%google%' and search_phrase <> ''
group by search_phrase
order by views desc
limit 10
