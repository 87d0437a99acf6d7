-- Writes a session. Arguments: the principal, the handle, the holder and the token of the lease, the version that the
-- caller has, whether this may be a retry after a lost reply, the text, the names, and a stamp that is unique to this
-- write: a retry finds the stamp if the write has taken place. Then the list of pieces, which is empty if there are none,
-- followed by each missing digest and its piece.
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
