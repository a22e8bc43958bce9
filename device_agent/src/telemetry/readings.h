// What is read below `sysroot` while something runs: fuel gauge, rails, skin, clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "system/files.h"
#include "journal/json_object.h"

namespace pocketfarm {

// Nodes of /sys and /proc are opened once, read again and again.
class Node {
 public:
  Node() = default;
  explicit Node(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(fd_); }
  // What it says now, at most a page, without the trailing white space; empty where it cannot be read.
  std::string text() const;
  // The whole number that it begins with.
  std::optional<int64_t> number() const;
  void set(JsonObject& fields, const char* key) const;

 private:
  std::string path_;
  Descriptor fd_;
};

// The first of these that holds a number; an empty node where there is none.
Node first_readable(const std::vector<std::string>& paths);
// The first of these that can be opened and says something.
Node first_open(const std::vector<std::string>& paths);

// The battery's fuel gauge.
struct Battery {
  Node current, voltage, temp, charge, status;

  // What can be read below `sysroot`/sys/class/power_supply.
  static Battery open(const std::string& sysroot);
  // Fields of a `power` event; the current first, at once followed by its voltage.
  void read(JsonObject& fields) const;
};

// On-device power monitor: energy counters of rails.
class Rails {
 public:
  // The IIO devices whose name ends with -odpm and whose counters are readable.
  static Rails open(const std::string& sysroot);
  explicit operator bool() const { return !monitors_.empty(); }
  // Fields of a `rails` event.
  JsonObject read() const;

 private:
  struct Monitor {
    std::string name;
    Node energy;
  };
  std::vector<Monitor> monitors_;
};

// Temperature of the phone's skin.
class Skin {
 public:
  // The first readable thermal zone whose type names the skin.
  static Skin open(const std::string& sysroot);
  void read(JsonObject& fields) const;
  // Tenths of a degree Celsius.
  std::optional<int64_t> tenths() const;

 private:
  Node temp_;
};

// Clocks of the graphics, what the system allows them, and how busy they are.
class GpuClock {
 public:
  static GpuClock open(const std::string& sysroot);
  explicit operator bool() const { return static_cast<bool>(now_); }
  void read(JsonObject& fields) const;

 private:
  Node now_, cap_, percent_, ticks_;
};

// Cores whose clock is readable. Cores of one cluster share a node, which is read once.
class CpuClocks {
 public:
  static CpuClocks open(const std::string& sysroot);
  explicit operator bool() const { return !policies_.empty(); }
  void read(JsonObject& fields) const;

 private:
  struct Policy {
    std::string folder;
    Node now, cap;
  };
  std::vector<Policy> policies_;
  std::vector<size_t> policy_of_;  // by core
};

// The core for a thread that must not disturb: the last of the slowest among those that we may use.
int quiet_core();
// Those that we may use, the fastest first, those of one speed rising.
std::vector<int> fast_cores();

// How busy the processors are, and how much of that is ours.
class Busy {
 public:
  // Below a sysroot its own /proc/stat, where there is one.
  static Busy open(const std::string& sysroot);
  // Shares since the reading that told them last; at most every 100 ms, for the kernel counts in ticks of 10 ms and
  // takes longer to print them than all other nodes.
  void read(JsonObject& fields);

 private:
  struct Ticks {
    int64_t t_ns = 0, total = 0, busy = 0, own = 0;
  };
  std::optional<Ticks> now() const;

  Node all_, own_;
  std::optional<Ticks> before_;
};

// All that a `power` event says.
struct Gauge {
  Battery battery;
  GpuClock gpu;
  CpuClocks cpus;
  Skin skin;
  Busy busy;

  static Gauge open(const std::string& sysroot) {
    return {Battery::open(sysroot), GpuClock::open(sysroot), CpuClocks::open(sysroot), Skin::open(sysroot),
            Busy::open(sysroot)};
  }
  // The battery first: nothing that is read before it makes it late.
  JsonObject read() {
    JsonObject fields;
    battery.read(fields);
    gpu.read(fields);
    cpus.read(fields);
    skin.read(fields);
    busy.read(fields);
    return fields;
  }
};

}  // namespace pocketfarm
