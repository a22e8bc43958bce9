// The samples of a block, one after the other, whatever takes them.
#pragma once

#include <cstdint>

#include "system/status.h"
#include "telemetry/heat_gate.h"

namespace pocketfarm {

class Samples {
 public:
  virtual ~Samples() = default;
  // One sample and its `sample` event; its duration in ns.
  virtual Result<int64_t> sample(const char* phase, int index) = 0;
  // Whether it knows itself how many samples there are, and whether they are all taken.
  virtual bool trains() const { return false; }
  virtual bool finished() const { return false; }
  // One of several parts ends early where this gate says that it is hot.
  void watch(HeatGate& gate) { gate_ = &gate; }

 protected:
  bool is_hot() const { return gate_ != nullptr && gate_->is_hot(); }

 private:
  HeatGate* gate_ = nullptr;
};

}  // namespace pocketfarm
