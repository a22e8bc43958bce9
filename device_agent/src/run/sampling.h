// Samples, one after the other, each reported: one inference, or a stream of them.
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "journal/journal.h"
#include "outputs.h"
#include "schedule.h"

namespace pocketfarm {

class Sampling : public Samples {
 public:
  // A sample has so many inferences, back to back; one of the load is the mean of as many as last `least_ns` together.
  Sampling(const Plan& plan, Backend& backend, const Inputs& inputs, const Frames& frames, int inferences, int64_t least_ns, Journal& journal)
      : plan_(plan), backend_(backend), inputs_(inputs), frames_(frames), inferences_(inferences), least_ns_(least_ns), journal_(journal) {}

  Result<int64_t> sample(const char* phase, int index) override;
  // Inferences with device time stamps: `layer` events.
  Status layer_passes(int count);

 protected:
  const Plan& plan_;
  Backend& backend_;
  const Inputs& inputs_;
  const Frames& frames_;
  const int inferences_;
  const int64_t least_ns_;
  Journal& journal_;

 private:
  Status layer_pass(int pass);

  int64_t runs_ = 1;  // of a sample of the load
};

}  // namespace pocketfarm
