-- Keys: the handles of all sessions by their last use. Arguments: the milliseconds that make a session expire, how many
-- of the sessions to pass over, what stands before the handle in the key of a session, of a lease, and before the
-- principal in the key of its handles. Answers how many sessions expired, and how many have to be passed over next.
local unused, passed = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local before = time[1] * 1000 + math.floor(time[2] / 1000) - unused
local expired, handles = 0, redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', before), 'LIMIT', passed, 500)
for _, handle in ipairs(handles) do
  local session = ARGV[3] .. handle
  local principal = redis.call('HGET', session, 'principal')
  if redis.call('EXISTS', ARGV[4] .. handle) == 1 then
    passed = passed + 1
  else
    redis.call('ZREM', KEYS[1], handle)
    if principal then
      redis.call('ZREM', ARGV[5] .. principal, handle)
      redis.call('DEL', session)
      redis.call('HSET', session, 'principal', principal, 'expired', 1)
      redis.call('PEXPIRE', session, math.max(unused, 60000))
      expired = expired + 1
    end
  end
end
return { expired, passed, #handles }
