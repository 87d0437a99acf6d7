-- What the other scripts begin with. Keys: the session, its lease, the handles of all sessions by their last use, and
-- those of its principal alike. First argument: the principal.
local session, lease, all, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function problem(code)
  return { err = code .. ' see lispbox' }
end

-- The version and the stamp of the session, or what keeps it from being used.
local function state()
  local found = redis.call('HMGET', session, 'principal', 'expired', 'version', 'stamp')
  if found[1] ~= ARGV[1] then return nil, nil, problem('UNKNOWN') end
  if found[2] then return nil, nil, problem('EXPIRED') end
  return tonumber(found[3]), found[4]
end

-- What stands before the digest of a piece in the name of its field.
local PIECE = 'piece:'

-- Goes through the digests in a list of pieces, which begins with the length of the text; of no list through none.
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
end
