-- Expires sessions. Keys: the sorted set of all handles by last use. Arguments: the age in milliseconds at which a session
-- expires, the number of sessions to skip, the prefixes of session keys, of lease keys and of the principals' handle
-- sets, the field from which the age is measured, `used` or `created`, and the beginning of the names of records that
-- never expire. Returns the number of expired sessions, the number to skip in the next call, and the number examined.
local age, passed, what, permanent = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[6], ARGV[7]
local time = redis.call('TIME')
local before = time[1] * 1000 + math.floor(time[2] / 1000) - age
local last = what == 'used' and '(' .. string.format('%.0f', before) or '+inf'
local expired, handles = 0, redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', last, 'LIMIT', passed, 500)
for _, handle in ipairs(handles) do
  local session = ARGV[3] .. handle
  local found = redis.call('HMGET', session, 'principal', 'created', 'names')
  local principal, created, names = found[1], found[2], found[3]
  local is_young = what == 'created' and created and tonumber(created) >= before
  local is_permanent = names and string.sub(names, 1, #permanent) == permanent
  if is_young or is_permanent or redis.call('EXISTS', ARGV[4] .. handle) == 1 then
    passed = passed + 1
  else
    redis.call('ZREM', KEYS[1], handle)
    if principal then
      redis.call('ZREM', ARGV[5] .. principal, handle)
      redis.call('DEL', session)
      redis.call('HSET', session, 'principal', principal, 'expired', 1)
      redis.call('PEXPIRE', session, math.max(age, 60000))
      expired = expired + 1
    end
  end
end
return { expired, passed, #handles }
