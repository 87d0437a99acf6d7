-- Arguments: the principal, the handle, the version that is known already. Answers the version and the text, and of a
-- large session the list of its pieces and then each digest with its piece.
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
