-- Stores this version and text as the session. `list` contains the digests of its pieces and is empty if there are none;
-- the pieces that are not stored yet are the arguments from `first` on, each after its digest.
local function put(handle, version, text, names, stamp, list, first)
  local before = redis.call('HGET', session, 'pieces')
  -- The command that allocates memory comes first: after its first write, a script may exceed `maxmemory`.
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
