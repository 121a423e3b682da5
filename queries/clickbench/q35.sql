select client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) as views
from hits
group by client_ip, client_ip - 1, client_ip - 2, client_ip - 3
order by views desc
limit 10
