select * from lineitem order by l_extendedprice, l_comment
