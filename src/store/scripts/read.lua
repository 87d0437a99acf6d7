-- Reads a session. Arguments: the principal, the handle, and the version that the caller already has. Returns the version
-- and the text; for a large session, also the list of its pieces, followed by each digest and its piece.
local version, _, wrong = state()
if wrong then return wrong end
if version == tonumber(ARGV[3]) then return nil end
local text, list = unpack(redis.call('HMGET', session, 'text', 'pieces'))
local answer = { version, text, list }
for digest in digests(list) do
  table.insert(answer, digest)
  table.insert(answer, redis.call('HGET', session, PIECE .. digest))
end
return answer
