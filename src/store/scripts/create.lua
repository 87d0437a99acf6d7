-- Arguments: the principal, the handle, the version of the keys, the text, the names, and a stamp that no other write has:
-- what is asked for again because its answer was lost has taken place if it is found. Then the list of the pieces, and
-- digest by digest what they are.
local _, handle, keys, text, names, stamp, list = unpack(ARGV, 1, 7)
local there = redis.call('HGET', session, 'stamp')
if there == stamp then return 1 end
if there or redis.call('EXISTS', session) == 1 then return problem('CHANGED') end
local wrong = note_version(keys)
if wrong then return wrong end
redis.call('HSET', session, 'principal', ARGV[1], 'created', now())
put(handle, 1, text, names, stamp, list, 8)
return 1
