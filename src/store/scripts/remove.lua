-- Removes a session. Arguments: the principal, the handle, and, if only the holder of the lease may remove the session,
-- the holder and the token.
local _, _, wrong = state()
if wrong then return wrong end
local _, handle, holder, token = unpack(ARGV)
if holder and not is_last(holder, token) then return problem('LOST') end
if not holder and redis.call('EXISTS', lease) == 1 then return problem('LEASED') end
redis.call('DEL', session, lease)
redis.call('ZREM', all, handle)
redis.call('ZREM', own, handle)
return 1
