select count(*) from hits
