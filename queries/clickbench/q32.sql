select watch_id, client_ip, count(*) as views, sum(is_refresh), avg(resolution_width)
from hits
group by watch_id, client_ip
order by views desc
limit 10
