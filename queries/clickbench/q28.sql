select
    regexp_replace(referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') as host,
    avg(length(referer)) as referer_length,
    count(*) as views,
    min(referer)
from hits
where referer <> ''
group by host
having count(*) > 1000
order by referer_length desc
limit 25
