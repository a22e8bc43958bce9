// Inferences, one after the other, each reported.
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "journal.h"
#include "outputs.h"

namespace pocketfarm {

class Sampling {
 public:
  Sampling(const Plan& plan, Backend& backend, const Inputs& inputs, Journal& journal)
      : plan_(plan), backend_(backend), inputs_(inputs), journal_(journal) {}

  // One inference and its `sample` event; its duration in ns.
  Result<int64_t> sample(const char* phase, int index);
  // Inferences with device time stamps: `layer` events.
  Status layer_passes(int count);

 private:
  Status layer_pass(int pass);
  void report(const std::vector<Step>& steps, const std::vector<int64_t>& leaf_ns, int pass);

  const Plan& plan_;
  Backend& backend_;
  const Inputs& inputs_;
  Journal& journal_;
};

}  // namespace pocketfarm
