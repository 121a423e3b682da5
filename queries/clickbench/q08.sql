select region_id, count(distinct user_id) as users
from hits
group by region_id
order by users desc
limit 10
