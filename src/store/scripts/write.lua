-- Arguments: the principal, the handle, the holder of the lease and its token, the version that is known, whether this may
-- have been asked before without an answer, the text, the names, and a stamp that no other write has: what is asked for
-- again has taken place if it is found. Then the list of the pieces, which is empty if there are none, and digest by
-- digest those that are not there.
local _, handle, holder, token, known, again, text, names, stamp, list = unpack(ARGV, 1, 10)
known = tonumber(known)
local version, last, wrong = state()
if wrong then return wrong end
if version == known + 1 and last == stamp then return version end
if again == '1' and version ~= known then return problem('UNHEARD') end
if not is_last(holder, token) then return problem('LOST') end
if version ~= known then return problem('CHANGED') end
put(handle, known + 1, text, names, stamp, list, 11)
return known + 1
