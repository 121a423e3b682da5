select user_id, count(*)
from hits
group by user_id
order by count(*) desc
limit 10
