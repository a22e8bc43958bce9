// Epochs of a plan that trains, one after the other, each reported as a sample; checkpoints between them.
#pragma once

#include "sampling.h"
#include "system/args.h"

namespace pocketfarm {

class Training final : public Sampling {
 public:
  Training(const Plan& plan, Backend& backend, const Inputs& inputs, const Frames& frames, Journal& journal, const Args& args)
      : Sampling(plan, backend, inputs, frames, 1, 0, journal), args_(args) {}

  // Takes the variables from `--resume`, if there is one, and goes on where they were left.
  Status resume();
  // A driver may build kernels when they first run: so that no epoch is charged with it, a batch of each stage runs and what it changed is
  // put back.
  Status build(SetupLog& log);
  bool trains() const override { return true; }
  bool finished() const override;
  // One epoch and its `sample` event; then a `checkpoint`, where one is due.
  Result<int64_t> sample(const char* phase, int index) override;

 private:
  const Stage& stage() const { return plan_.stages[stage_]; }
  Status find_place();
  Status report(const char* phase, int index, int64_t start_ns, int64_t duration_ns);

  const Args& args_;
  size_t stage_ = 0;
  int64_t epoch_ = 0;  // of the stage, done
  int done_ = 0;       // epochs of this run
};

}  // namespace pocketfarm
