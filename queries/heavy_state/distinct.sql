select count(distinct l_comment) as comments from lineitem
