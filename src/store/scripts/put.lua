-- Makes the session that version of that text, whose pieces are in the list, which is empty if there are none; those that
-- are not there yet are the arguments from that one on, digest by digest.
local function put(handle, version, text, names, stamp, list, first)
  local before = redis.call('HGET', session, 'pieces')
  -- First what takes memory: once a script has written anything, Redis lets it take more than `maxmemory`.
  redis.call('HSET', session, 'version', version, 'text', text, 'names', names, 'stamp', stamp)
  local stays = {}
  for digest in digests(list) do stays[digest] = true end
  for digest in digests(before) do
    if not stays[digest] then redis.call('HDEL', session, PIECE .. digest) end
  end
  for at = first, #ARGV, 2 do redis.call('HSET', session, PIECE .. ARGV[at], ARGV[at + 1]) end
  if list == '' then
    redis.call('HDEL', session, 'pieces')
  else
    redis.call('HSET', session, 'pieces', list)
  end
  use(handle)
end
