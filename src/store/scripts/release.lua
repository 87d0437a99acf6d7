-- Releases a lease. Arguments: the principal, the handle, the holder and the token of the lease.
local _, _, holder, token = unpack(ARGV)
if is_last(holder, token) then
  redis.call('HDEL', session, 'holder')
  redis.call('DEL', lease)
end
return 1
