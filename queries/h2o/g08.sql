select id6, v3 as largest2_v3
from (select id6, v3, row_number() over (partition by id6 order by v3 desc) as place from grouped) as ranked
where place <= 2
