"""What the leases do in Redis, each in one atomic step by Redis' own clock: scripts in Lua."""

from __future__ import annotations

from . import keys
from .change_log import NOTE
from .news import TELL

# ARGV[1]: serial. A host may read whose lease it is, and write its own: so the keys are found here, and not declared.
_NOW = "local t = redis.call('TIME'); local now = t[1] + t[2] / 1e6\n"
# What is no hash, or no number, is as if Redis had lost it.
_GUARD = """
local function text(key, field)
  local found = redis.pcall('HGET', key, field)
  return type(found) == 'string' and found or ''
end
local function number(key, field) return tonumber(text(key, field)) or 0 end
local guard = 'farm:lease:' .. ARGV[1]
local token = number(guard, 'token')
local last = math.max(token, number(guard, 'last'))
local host = text(guard, 'host')
local held = 'farm:held:' .. host .. ':' .. ARGV[1]
local assigned = 'farm:assignment:' .. host .. ':' .. ARGV[1]
"""
_KEEP = """
local function keep(ttl) redis.call('HSET', held, 'expires_at', string.format('%.6f', now + ttl)) end
"""
_JOB = "local job = text(held, 'job_id')\n"

# ARGV: serial, token, job, attempt, ttl, assignment, holder, mode, host, last. `restore` alone replaces a live lease.
ACQUIRE = (
    NOTE
    + _NOW
    + _GUARD
    + _KEEP
    + _JOB
    + """
if last >= tonumber(ARGV[2]) then return 0 end
if job ~= '' and number(held, 'expires_at') > now and ARGV[8] ~= 'restore' then return 0 end
redis.call('DEL', held, assigned)
redis.call('SREM', 'farm:leased', host .. ':' .. ARGV[1])
if host ~= '' and host ~= ARGV[9] then note(host, 'l' .. ARGV[1]) end
held = 'farm:held:' .. ARGV[9] .. ':' .. ARGV[1]
redis.call('DEL', guard)
redis.call('HSET', guard, 'token', ARGV[2], 'last', ARGV[10], 'host', ARGV[9])
redis.call('DEL', held)
redis.call('HSET', held, 'token', ARGV[2], 'job_id', ARGV[3], 'attempt', ARGV[4], 'ttl_s', ARGV[5], 'holder', ARGV[7])
if ARGV[10] ~= ARGV[2] then redis.call('HSET', held, 'last', ARGV[10]) end
redis.call('SET', 'farm:assignment:' .. ARGV[9] .. ':' .. ARGV[1], ARGV[6])
redis.call('SADD', 'farm:leased', ARGV[9] .. ':' .. ARGV[1])
note(ARGV[9], 'l' .. ARGV[1])
keep(tonumber(ARGV[5]))
return 1
"""
)
# ARGV: serial, token, holder
CLAIM = (
    NOTE
    + _NOW
    + _GUARD
    + _KEEP
    + """
if token ~= tonumber(ARGV[2]) then return false end
"""
    + _JOB
    + """
if job == '' or text(held, 'holder') ~= '' then return false end
if number(held, 'expires_at') <= now then return false end
local assignment = redis.call('GET', assigned)
if not assignment then return false end
redis.call('HSET', held, 'holder', ARGV[3])
note(host, 'l' .. ARGV[1])
keep(number(held, 'ttl_s'))
return assignment
"""
)
# ARGV: serial, token, holder, ttl
RENEW = (
    _NOW
    + _GUARD
    + _KEEP
    + """
local mine = tonumber(ARGV[2])
if token > mine then return 'superseded' end
if last < mine then return 'missing' end
"""
    + _JOB
    + """
if job == '' then return 'ended' end
if text(held, 'holder') ~= ARGV[3] then return 'superseded' end
keep(tonumber(ARGV[4]))
return 'held'
"""
)
# ARGV: serial, token, holder, the next token, its job and its attempt
ADVANCE = (
    _NOW
    + _GUARD
    + _KEEP
    + """
local mine, following = tonumber(ARGV[2]), tonumber(ARGV[4])
if token > mine then return 'superseded' end
if last < following then return 'missing' end
"""
    + _JOB
    + f"""
if job == '' then return 'ended' end
if text(held, 'holder') ~= ARGV[3] or number(held, 'token') ~= mine then
  return 'superseded'
end
for _, what in ipairs({{ARGV[5], '{keys.recall("")}' .. ARGV[1]}}) do
  if redis.call('SISMEMBER', '{keys.CANCELLED}', what) == 1 then return 'recalled' end
end
redis.call('HSET', held, 'token', ARGV[4], 'job_id', ARGV[5], 'attempt', ARGV[6])
keep(number(held, 'ttl_s'))
return 'held'
"""
)
# ARGV: serial, token, 'expired', 'withdrawn' or ''. A host may not write how far its line has come.
RELEASE = (
    NOTE
    + TELL
    + _NOW
    + _GUARD
    + """
local mine = tonumber(ARGV[2])
if mine < token or mine > last then return 0 end
"""
    + _JOB
    + """
if job == '' then return 0 end
if ARGV[3] == 'expired' and number(held, 'expires_at') > now then return 0 end
if ARGV[3] ~= '' and last > token then
  local at = text(held, 'token')
  redis.call('HSET', guard, 'reached', at ~= '' and at or token)
end
redis.call('DEL', held, assigned)
note(host, 'l' .. ARGV[1])
tell(host)
return 1
"""
)
# ARGV: HOST:SERIAL of leases that were released: out of the index, unless they are there again.
FORGET = """
for _, name in ipairs(ARGV) do
  if redis.call('EXISTS', 'farm:held:' .. name) == 0 then redis.call('SREM', 'farm:leased', name) end
end
"""
