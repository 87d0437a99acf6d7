-- Arguments: the principal, the handle.
local _, _, wrong = state()
if wrong then return wrong end
if redis.call('EXISTS', lease) == 1 then return problem('LEASED') end
redis.call('DEL', session)
redis.call('ZREM', all, ARGV[2])
redis.call('ZREM', own, ARGV[2])
return 1
