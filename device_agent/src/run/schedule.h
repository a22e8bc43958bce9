// The course of a block: await discharging - idle - warm-up until stable - load - idle, sampled throughout.
#pragma once

#include "system/args.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "telemetry/gates.h"

namespace pocketfarm {

// The samples of a block, one after the other, whatever takes them.
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

// Runs a block, with a `phase` event at the end of each phase of which something was asked; the number of timed samples.
Result<int> run_block(const Args& args, const Environment& environment, Journal& journal, Samples& samples);

}  // namespace pocketfarm
