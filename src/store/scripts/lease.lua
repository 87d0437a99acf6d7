-- Takes a lease. Arguments: the principal, the handle, the holder, the duration of the lease in milliseconds, whether this
-- may be a retry after a lost reply, and the schema version of the keys. Returns the fencing token.
local _, _, wrong = state()
if wrong then return wrong end
local _, handle, holder, length, again, keys = unpack(ARGV)
wrong = note_version(keys)
if wrong then return wrong end
if not redis.call('SET', lease, holder, 'NX', 'PX', length) then
  if again == '0' or redis.call('GET', lease) ~= holder then return problem('LEASED') end
end
redis.call('HSET', session, 'holder', holder)
use(handle)
return redis.call('HINCRBY', session, 'fence', 1)
