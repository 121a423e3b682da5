select user_id from hits where user_id = -5592908258890512391
