// Memory and calls of one inference. Several may be under way at a time: each has an instance, and all share the weights.
#pragma once

#include <memory>
#include <vector>

#include "plan/bundle.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {

// Pages of a pool, zeroed by the kernel when first touched.
class Pages {
 public:
  explicit Pages(uint64_t bytes);
  Pages(const Pages&) = delete;
  ~Pages();
  std::byte* data() const { return data_; }  // null where there was no memory

 private:
  std::byte* data_;
  uint64_t bytes_;
};

class Instance {
 public:
  explicit Instance(const Plan& plan) : plan_(plan) {}

  // In this order. `first`: an instance whose pools of nothing but weights are taken; null: there is none yet.
  Status allocate(const Instance* first);  // `out_of_memory`
  Status make_calls();  // `plan_invalid`
  void upload(const Bundle& bundle, const Instance* first);

  std::byte* address(const Buffer& buffer) const { return pools_[buffer.pool]->data() + buffer.offset; }
  void execute(const Step& step, ThreadPool& pool);
  uint64_t bytes() const { return bytes_; }  // of pools that are its own

 private:
  struct Prepared {
    const Operation* operation = nullptr;
    Call call;
  };

  Status make_call(const Step& step);

  const Plan& plan_;
  std::vector<std::shared_ptr<Pages>> pools_;
  std::vector<Prepared> calls_;  // by step
  std::vector<std::vector<std::byte>> swapped_;
  uint64_t bytes_ = 0;
};

}  // namespace pocketfarm::cpu
