// Errors as values: a Status is empty on success, a Result holds a value or the error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace pocketfarm {

// The codes of the `error` event (orchestrator/model/event.py).
enum class Code {
  usage, plan_invalid, limit, no_device, unsupported, build_failed, out_of_memory,
  device_error, io, storage_full, deadline, cancelled, power_contaminated, program_failed, too_hot, internal,
};

const char* word(Code code);

// A kernel that the driver refuses in its work-group: for registers or local memory that only its compiler counts.
struct RefusedKernel {
  std::string kernel;       // its name in the plan; empty: the error is another
  uint64_t work_group = 0;  // work-items that were asked for
  uint64_t allowed = 0;     // as many as the driver says that this kernel may have; 0: it does not tell
};

struct Error {
  Code code;
  std::string message;  // what failed, where, and how to mend it
  std::string step = "";  // name of the set-up step or layer, where one is concerned
  RefusedKernel refused = {};
};

using Status = std::optional<Error>;
inline constexpr std::nullopt_t kOk = std::nullopt;

template <typename T>
class Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace pocketfarm
