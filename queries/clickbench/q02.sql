select sum(advertising_engine_id), count(*), avg(resolution_width) from hits
