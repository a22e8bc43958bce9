// Memory and calls of one inference. Several may be under way at a time: each has an instance, and all share the weights,
// which stay where the bundle's file is mapped.
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
  explicit Instance(const Bundle& bundle) : bundle_(bundle), plan_(bundle.plan) {}

  // In this order.
  Status allocate();    // `out_of_memory`
  Status make_calls();  // `plan_invalid`
  uint64_t upload();    // the bytes that were copied

  std::byte* address(const Buffer& buffer) const {
    return pools_[buffer.pool] ? pools_[buffer.pool]->data() + buffer.offset : bundle_.content(buffer);
  }
  void execute(const Step& step, ThreadPool& pool);
  uint64_t bytes() const { return bytes_; }                // of its own
  uint64_t weight_bytes() const { return weight_bytes_; }  // of pools of nothing but weights

 private:
  struct Prepared {
    const Operation* operation = nullptr;
    Call call;
  };

  Status make_call(const Step& step);

  const Bundle& bundle_;
  const Plan& plan_;
  std::vector<std::unique_ptr<Pages>> pools_;  // null: of nothing but weights
  std::vector<Prepared> calls_;  // by step
  std::vector<std::vector<std::byte>> swapped_;
  uint64_t bytes_ = 0, weight_bytes_ = 0;
};

}  // namespace pocketfarm::cpu
