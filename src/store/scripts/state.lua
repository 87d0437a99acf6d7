-- The common beginning of the scripts that operate on one session. Keys: the session, its lease, the sorted set of all
-- handles by last use, that of its principal, the schema version of the keys, and the set of principals. First arguments:
-- the principal, the handle.
local session, lease, all, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function problem(code, detail)
  return { err = code .. ' ' .. (detail or 'see lispbox') }
end

-- Returns the version and the stamp of the session, or the reason why it cannot be used.
local function state()
  local found = redis.call('HMGET', session, 'principal', 'expired', 'version', 'stamp')
  if found[1] ~= ARGV[1] then return nil, nil, problem('UNKNOWN') end
  if found[2] then return nil, nil, problem('EXPIRED') end
  return tonumber(found[3]), found[4]
end

-- True if this lease was the last one taken and has not been released; it may have expired since.
local function is_last(holder, token)
  local found = redis.call('HMGET', session, 'holder', 'fence')
  return found[1] == holder and found[2] == token
end

-- Records the schema version of the keys; returns an error if they have a greater one.
local function note_version(version)
  local found = redis.call('GET', KEYS[5])
  if found and tonumber(found) > tonumber(version) then return problem('NEWER', found) end
  if found ~= version then redis.call('SET', KEYS[5], version) end
end

-- The prefix of the field of a piece, before its digest.
local PIECE = 'piece:'

-- Iterates over the digests in a list of pieces, which begins with the length of the text; an absent list has none.
local function digests(list)
  local at = -7
  return function()
    at = at + 16
    if list and at + 15 <= #list then return string.sub(list, at, at + 15) end
  end
end

local function use(handle)
  local used = now()
  redis.call('ZADD', all, used, handle)
  redis.call('ZADD', own, used, handle)
  redis.call('SADD', KEYS[6], ARGV[1])
end
