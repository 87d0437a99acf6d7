-- Keys: the lease. Arguments: the holder, the milliseconds that the lease holds from now on; 0 ends it.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
