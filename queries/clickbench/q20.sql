select count(*) from hits where url like '%google%'
