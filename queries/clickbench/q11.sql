select mobile_phone, mobile_phone_model, count(distinct user_id) as users
from hits
where mobile_phone_model <> ''
group by mobile_phone, mobile_phone_model
order by users desc
limit 10
