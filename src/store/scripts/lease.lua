-- Arguments: the principal, the handle, the holder, the milliseconds that the lease holds, and whether this may have
-- been asked before, without an answer.
local _, _, wrong = state()
if wrong then return wrong end
local _, handle, holder, length, again = unpack(ARGV)
if not redis.call('SET', lease, holder, 'NX', 'PX', length) then
  if again == '0' or redis.call('GET', lease) ~= holder then return problem('LEASED') end
end
use(handle)
return 1
