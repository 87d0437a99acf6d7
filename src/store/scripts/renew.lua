-- Arguments: the principal, the handle, the holder and the token of the lease, and the milliseconds that it holds from now
-- on.
local _, _, wrong = state()
local _, _, holder, token, length = unpack(ARGV)
if wrong or not is_last(holder, token) then return problem('LOST') end
-- Making a key takes memory, of which there may be none; making one last does not.
if redis.call('PEXPIRE', lease, length) == 0 then redis.call('SET', lease, holder, 'PX', length) end
return 1
