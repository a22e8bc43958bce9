"""Bodies of the farm's other functions in Redis: announcements, the streams of records, and the sweep. In Lua."""

from __future__ import annotations

from orchestrator.coordination import keys

_KINDS = ", ".join(f"['{word}'] = {{'{kind.type}', {kind.most_bytes}}}" for word, kind in keys.KINDS.items())
HELPERS = f"""
local KINDS = {{{_KINDS}}}
local REPLY_BYTES, REPLY_LIFE_S, NOBODY = {keys.REPLY_BYTES}, {keys.REPLY_LIFE_S}, '{keys.NOBODY}'
"""

# ARGV: index, start of the keys, names: out of the index, unless somebody has announced them meanwhile.
FORGET = """
for i = 3, #ARGV do
  if redis.call('EXISTS', ARGV[2] .. ARGV[i]) == 0 then redis.pcall('ZREM', ARGV[1], ARGV[i]) end
end
"""
# KEYS: stream, then of each record that it was sent. ARGV: host, longest stream, life of the names, whether the
# scheduler is woken; then each record and its name. 0: the stream is full.
SEND = f"""
if (redis.call('MEMORY', 'USAGE', KEYS[1]) or 0) > {keys.STREAM_BYTES} then return 0 end
redis.pcall('SADD', '{keys.SENDERS}', ARGV[1])
for i = 2, #KEYS do
  local record, name = ARGV[2 * i + 1], ARGV[2 * i + 2]
  local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'record', record, 'name', name)
  redis.call('SET', KEYS[i], id, 'EX', ARGV[3])
end
if ARGV[4] == '1' then tell(ARGV[1]) end
return 1
"""
HOLDS = """
local id = redis.call('GET', KEYS[2])
return id and #redis.call('XRANGE', KEYS[1], id, id) or 0
"""
# KEYS: stream. ARGV: first number, how many, bytes of all, bytes of one. What is longer is cut, and says so.
ENTRIES = """
local found, size, start, cut = {}, 0, ARGV[1], {}
while #found < tonumber(ARGV[2]) and size <= tonumber(ARGV[3]) do
  local entry = redis.call('XRANGE', KEYS[1], start, '+', 'COUNT', 1)[1]
  if not entry then break end
  local mine = 0
  for i, part in ipairs(entry[2]) do
    mine = mine + #part
    if #part > tonumber(ARGV[4]) then
      entry[2][i] = string.sub(part, 1, 200)
      entry[3] = #part
    end
  end
  size, start = size + mine, '(' .. entry[1]
  found[#found + 1] = entry
end
return found
"""
# KEYS: stream. ARGV: of each entry its number, its word, the word's life, and the keys of its receipt and of its name
# (empty: its name is not known).
ACKNOWLEDGE = """
for i = 1, #ARGV, 5 do
  if ARGV[i + 3] ~= '' then
    redis.call('SET', ARGV[i + 3], ARGV[i + 1], 'EX', ARGV[i + 2])
    redis.call('DEL', ARGV[i + 4])
  end
  redis.pcall('XDEL', KEYS[1], ARGV[i])
end
"""
# ARGV: cursor, how many keys. The next cursor, what went, and of each host that has keys among these their bytes.
# A lease's guard goes with it: alone it says that the lease was released.
SWEEP = """
local answer, gone, bytes = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2]), {}, {}
for _, key in ipairs(answer[2]) do
  local word, rest = string.match(key, '^farm:([^:]+):?([^:]*)')
  local kind, size = KINDS[word], redis.call('MEMORY', 'USAGE', key) or 0
  local is_right = not kind or redis.call('TYPE', key).ok == kind[1]
  if not word then
    local type = string.sub(key, 1, 1) == '_' and 'set' or 'list'
    rest = string.match(key, '^farm%.([^.]+)$') or string.match(key, '^farm@([^.]+)%.celery%.pidbox$')
      or string.match(key, '^_kombu%.binding[_a-z]*%.farm%.([^.]+)$')
    if not rest and string.match(key, '%.celery%.pidbox$') then
      local idle_s = type == 'list' and tonumber(redis.pcall('OBJECT', 'IDLETIME', key)) or 0
      rest, is_right = NOBODY, size <= REPLY_BYTES and idle_s <= REPLY_LIFE_S
    end
    is_right = is_right and (not rest or redis.call('TYPE', key).ok == type)
  end
  if not is_right or (kind and size > kind[2]) then
    redis.call('UNLINK', key)
    gone[#gone + 1] = key
    local host, serial = string.match(key, '^farm:held:([^:]+):(.+)$')
    if serial and text('farm:lease:' .. serial, 'host') == host then
      redis.call('UNLINK', 'farm:lease:' .. serial)
      note(host, 'l' .. serial)
    end
  elseif rest and rest ~= '' and word ~= 'lease' then
    bytes[rest] = (bytes[rest] or 0) + size
  end
end
local sizes = {}
for host, size in pairs(bytes) do sizes[#sizes + 1] = host; sizes[#sizes + 1] = size end
return {answer[1], gone, sizes}
"""
# KEYS: the mark of a work. ARGV: seconds until it is due again, seconds for which it has to be due by now (empty:
# mark it anyway). A mark of later than in a minute is from before the clock was set back.
TAKE = """
local time = redis.call('TIME')
local now, mark = time[1] + time[2] / 1e6, tonumber(redis.call('GET', KEYS[1])) or 0
if ARGV[2] ~= '' and now < mark + ARGV[2] and mark < now + 60 then return 0 end
redis.call('SET', KEYS[1], string.format('%.6f', now + ARGV[1]), 'EX', 3600)
return 1
"""
