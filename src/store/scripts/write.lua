-- Arguments: the principal, the handle, the version that is known, the text, the names, and a stamp that no other write
-- has: a write that is asked for again because its answer was lost has taken place if it is found. Then the list of the
-- pieces, which is empty if there are none, and digest by digest those that are not there.
local _, handle, known, text, names, stamp, list = unpack(ARGV, 1, 7)
known = tonumber(known)
if known == 0 then
  local there = redis.call('HGET', session, 'stamp')
  if there == stamp then return 1 end
  if there or redis.call('EXISTS', session) == 1 then return problem('CHANGED') end
  redis.call('HSET', session, 'principal', ARGV[1], 'created', now())
else
  local version, last, wrong = state()
  if wrong then return wrong end
  if version == known + 1 and last == stamp then return version end
  if version ~= known then return problem('CHANGED') end
end
local stays = {}
for digest in digests(list) do stays[digest] = true end
for digest in digests(redis.call('HGET', session, 'pieces')) do
  if not stays[digest] then redis.call('HDEL', session, PIECE .. digest) end
end
for at = 8, #ARGV, 2 do redis.call('HSET', session, PIECE .. ARGV[at], ARGV[at + 1]) end
if list == '' then
  redis.call('HDEL', session, 'pieces')
else
  redis.call('HSET', session, 'pieces', list)
end
redis.call('HSET', session, 'version', known + 1, 'text', text, 'names', names, 'stamp', stamp)
use(handle)
return known + 1
