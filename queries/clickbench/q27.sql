select counter_id, avg(length(url)) as url_length, count(*) as views
from hits
where url <> ''
group by counter_id
having count(*) > 1000
order by url_length desc
limit 25
