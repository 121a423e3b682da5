select url, count(*) as views
from hits
group by url
order by views desc
limit 10
