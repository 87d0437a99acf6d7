-- Renews a lease. Arguments: the principal, the handle, the holder and the token of the lease, and its duration from now in
-- milliseconds.
local _, _, wrong = state()
local _, _, holder, token, length = unpack(ARGV)
if wrong or not is_last(holder, token) then return problem('LOST') end
-- Creating a key needs memory, which may be exhausted; extending the expiry of a key does not.
if redis.call('PEXPIRE', lease, length) == 0 then redis.call('SET', lease, holder, 'PX', length) end
return 1
