-- Creates a session. Arguments: the principal, the handle, the schema version of the keys, the text, the names, and a
-- stamp that is unique to this write: a retry after a lost reply finds the stamp if the write has taken place. Then the
-- list of pieces, followed by each digest and its piece.
local _, handle, keys, text, names, stamp, list = unpack(ARGV, 1, 7)
local there = redis.call('HGET', session, 'stamp')
if there == stamp then return 1 end
if there or redis.call('EXISTS', session) == 1 then return problem('CHANGED') end
local wrong = note_version(keys)
if wrong then return wrong end
redis.call('HSET', session, 'principal', ARGV[1], 'created', now())
put(handle, 1, text, names, stamp, list, 8)
return 1
