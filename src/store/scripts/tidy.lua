-- Keys: the handles of a principal's sessions by their last use, the principals, and the handles of all sessions.
-- Arguments: the principal, how many of the handles to pass over and how many to look at, and what stands before the
-- handle in the key of a session. Removes handles of sessions that are gone. Answers how many to pass over next, and how
-- many were looked at.
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
