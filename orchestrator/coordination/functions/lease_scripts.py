"""The leases' functions in Redis, each in one atomic step by Redis' own clock: their bodies, in Lua.

Several keys describe one lease: its guard, what its holder may write, the assignment, the index. A lease is whole, or
it is as if Redis had lost it: READ discards what is left of one.
"""

from __future__ import annotations

from orchestrator.coordination import keys
from orchestrator.model.live.lease import LARGEST_TOKEN

# A host may read whose lease it is, and write its own: so the keys are found here, and not declared.
# What is no hash, or no token, is as if Redis had lost it; so is a guard that names no host.
MOST = LARGEST_TOKEN + 2**40
"""A counter that goes on behind what is damaged may be a little further than that."""
HELPERS = """
local MOST = most_of_all
local function clock() local t = redis.call('TIME'); return t[1] + t[2] / 1e6 end
local function text(key, field)
  local found = redis.pcall('HGET', key, field)
  return type(found) == 'string' and found or ''
end
local function number(key, field)
  local found = text(key, field)
  return string.find(found, '^%d+%.?%d*$') and tonumber(found) or 0
end
local function place(l, host)
  l.held, l.assigned = 'farm:held:' .. host .. ':' .. l.serial, 'farm:assignment:' .. host .. ':' .. l.serial
  l.job = text(l.held, 'job_id')
end
local function lease_of(serial)
  local guard = 'farm:lease:' .. serial
  local l = {serial = serial, guard = guard, host = text(guard, 'host'), now = clock(), token = 0, last = 0}
  if l.host ~= '' then
    l.token = number(guard, 'token')
    l.last = math.max(l.token, number(guard, 'last'))
    if l.last > MOST then l.token, l.last = 0, 0 end
  end
  place(l, l.host)
  return l
end
local function keep(l, ttl) redis.call('HSET', l.held, 'expires_at', string.format('%.6f', l.now + ttl)) end
local function lives(l) return number(l.held, 'expires_at') > l.now end
local function whole(l)
  local mine = number(l.held, 'token')
  if l.job == '' or mine < 1 or mine < l.token or mine > l.last or number(l.held, 'attempt') < 1 then return false end
  local ends = number(l.held, 'expires_at')
  if ends == 0 or ends > l.now + number(l.guard, 'ttl_s') + 1 then return false end
  return text(l.held, 'holder') ~= '' or redis.call('TYPE', l.assigned).ok == 'string'
end
local function enlist(name)
  if redis.call('TYPE', 'farm:leased').ok ~= 'set' then redis.call('DEL', 'farm:leased') end
  redis.call('SADD', 'farm:leased', name)
end
""".replace("most_of_all", str(MOST))

# ARGV: serial, token, job, attempt, ttl, assignment, holder, mode, host, last. `restore` alone replaces a live lease.
ACQUIRE = """
local l = lease_of(ARGV[1])
if l.last >= tonumber(ARGV[2]) or tonumber(ARGV[10]) > MOST then return 0 end
if ARGV[8] ~= 'restore' and whole(l) and lives(l) then
  enlist(l.host .. ':' .. l.serial)
  note(l.host, 'l' .. l.serial)
  return 0
end
redis.call('DEL', l.held, l.assigned, l.guard)
if l.host ~= '' and l.host ~= ARGV[9] then
  redis.pcall('SREM', 'farm:leased', l.host .. ':' .. l.serial)
  note(l.host, 'l' .. l.serial)
end
place(l, ARGV[9])
redis.call('HSET', l.guard, 'token', ARGV[2], 'last', ARGV[10], 'host', ARGV[9], 'ttl_s', ARGV[5])
redis.call('DEL', l.held)
redis.call('HSET', l.held, 'token', ARGV[2], 'job_id', ARGV[3], 'attempt', ARGV[4], 'holder', ARGV[7])
if ARGV[10] ~= ARGV[2] then redis.call('HSET', l.held, 'last', ARGV[10]) end
redis.call('SET', l.assigned, ARGV[6])
enlist(ARGV[9] .. ':' .. l.serial)
note(ARGV[9], 'l' .. l.serial)
keep(l, tonumber(ARGV[5]))
return 1
"""
# ARGV: serial, token, holder
CLAIM = """
local l = lease_of(ARGV[1])
if l.token ~= tonumber(ARGV[2]) or not whole(l) or not lives(l) or text(l.held, 'holder') ~= '' then return false end
redis.call('HSET', l.held, 'holder', ARGV[3])
note(l.host, 'l' .. l.serial)
keep(l, number(l.guard, 'ttl_s'))
return redis.call('GET', l.assigned)
"""
# ARGV: serial, token, holder, ttl: no longer than it was given for
RENEW = """
local l, mine = lease_of(ARGV[1]), tonumber(ARGV[2])
if l.token > mine then return 'superseded' end
if l.last < mine then return 'missing' end
if l.job == '' then return 'ended' end
if text(l.held, 'holder') ~= ARGV[3] then return 'superseded' end
keep(l, math.min(tonumber(ARGV[4]), number(l.guard, 'ttl_s')))
return 'held'
"""
# ARGV: serial, token, holder, the next token, its job and its attempt
ADVANCE = f"""
local l, mine, following = lease_of(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
if l.token > mine then return 'superseded' end
if l.last < following then return 'missing' end
if l.job == '' then return 'ended' end
if text(l.held, 'holder') ~= ARGV[3] or number(l.held, 'token') ~= mine then return 'superseded' end
for _, what in ipairs({{ARGV[5], '{keys.recall("")}' .. l.serial}}) do
  if redis.call('SISMEMBER', '{keys.CANCELLED}', what) == 1 then return 'recalled' end
end
redis.call('HSET', l.held, 'token', ARGV[4], 'job_id', ARGV[5], 'attempt', ARGV[6])
keep(l, number(l.guard, 'ttl_s'))
return 'held'
"""
# ARGV: serial, token, 'expired', 'withdrawn' or ''. A host may not write how far its line has come.
RELEASE = """
local l, mine = lease_of(ARGV[1]), tonumber(ARGV[2])
if mine < l.token or mine > l.last or l.job == '' then return 0 end
if ARGV[3] == 'expired' and lives(l) then return 0 end
if ARGV[3] ~= '' and l.last > l.token then
  local at = text(l.held, 'token')
  redis.call('HSET', l.guard, 'reached', at ~= '' and at or l.token)
end
redis.call('DEL', l.held, l.assigned)
note(l.host, 'l' .. l.serial)
tell(l.host)
return 1
"""
# ARGV: HOST:SERIAL. Of each: '' without a lease, 'discarded' where it was not whole, or what is known of it.
READ = """
local answers = {}
for i, name in ipairs(ARGV) do
  local host, serial = string.match(name, '^([^:]+):(.+)$')
  local l, answer = lease_of(serial), ''
  local is_its_host = l.host == host
  place(l, host)
  if is_its_host and whole(l) then
    local function digits(field) return string.format('%.0f', math.floor(number(l.held, field))) end
    local who, ends = text(l.held, 'holder'), text(l.held, 'expires_at')
    answer = {digits('token'), digits('last'), l.job, digits('attempt'), who, ends}
    if redis.pcall('SISMEMBER', 'farm:leased', name) ~= 1 then enlist(name); note(host, 'l' .. serial) end
  else
    if redis.call('EXISTS', l.held) == 1 then
      answer = 'discarded'
      if is_its_host or l.host == '' then redis.call('DEL', l.guard) end
      redis.call('DEL', l.held, l.assigned)
      note(host, 'l' .. serial)
      tell(host)
    end
    redis.pcall('SREM', 'farm:leased', name)
  end
  answers[i] = answer
end
return answers
"""
# ARGV: serials. What keeps the tokens of each: the newest one, and how far its line came.
FENCES = """
local answers = {}
for i, serial in ipairs(ARGV) do
  local l = lease_of(serial)
  answers[i] = {l.token, l.last, l.host ~= '' and number(l.guard, 'reached') or 0, l.host}
end
return answers
"""
