select 1, url, count(*) as views
from hits
group by 1, url
order by views desc
limit 10
