select count(*) from hits where advertising_engine_id <> 0
