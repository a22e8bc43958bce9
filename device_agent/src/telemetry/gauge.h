// All that a `power` event says.
#pragma once

#include "readings.h"
#include "busy.h"

namespace pocketfarm {

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
