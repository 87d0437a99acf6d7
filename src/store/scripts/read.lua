-- Arguments: the principal, the handle, the version that is known already.
local version, _, wrong = state()
if wrong then return wrong end
if version == tonumber(ARGV[3]) then return nil end
return { version, redis.call('HGET', session, 'text') }
