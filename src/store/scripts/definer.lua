-- Finds a session that defines a name. Keys: the sorted set of the principal's handles by last use. Arguments: the name
-- as a line, the handle to exclude, and the prefix of session keys.
local first = 0
while true do
  local handles = redis.call('ZREVRANGE', KEYS[1], first, first + 99)
  for _, handle in ipairs(handles) do
    local names = handle ~= ARGV[2] and redis.call('HGET', ARGV[3] .. handle, 'names')
    if names and string.find(names, ARGV[1], 1, true) then return handle end
  end
  if #handles < 100 then return nil end
  first = first + 100
end
