-- Removes the handles of sessions that no longer exist. Keys: the sorted set of a principal's handles by last use, the set
-- of principals, and the sorted set of all handles. Arguments: the principal, the number of handles to skip, the number to
-- examine, and the prefix of session keys. Returns the number to skip in the next call, and the number examined.
local passed, page = tonumber(ARGV[2]), tonumber(ARGV[3])
local handles = redis.call('ZRANGE', KEYS[1], passed, passed + page - 1)
for _, handle in ipairs(handles) do
  if redis.call('EXISTS', ARGV[4] .. handle) == 1 then
    passed = passed + 1
  else
    redis.call('ZREM', KEYS[1], handle)
    redis.call('ZREM', KEYS[3], handle)
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
return { passed, #handles }
