#include "instance.h"

#include <sys/mman.h>

#include <cstring>

namespace pocketfarm::cpu {
namespace {

// Pools in which there is nothing but weights: no inference writes there.
std::vector<bool> constant_pools(const Plan& plan) {
  std::vector<bool> constant(plan.pools.size(), true);
  for (const Buffer& buffer : plan.buffers)
    if (!buffer.blob_offset || buffer.variable || buffer.offloaded) constant[buffer.pool] = false;
  return constant;
}

}  // namespace

Pages::Pages(uint64_t bytes) : bytes_(bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  data_ = data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Status Instance::allocate() {
  const std::vector<bool> constant = constant_pools(plan_);
  for (size_t i = 0; i < plan_.pools.size(); ++i) {
    const Pool& pool = plan_.pools[i];
    if (constant[i]) {
      pools_.push_back(nullptr);
      weight_bytes_ += pool.bytes;
      continue;
    }
    pools_.push_back(std::make_unique<Pages>(pool.bytes));
    if (pools_.back()->data() == nullptr)
      return Error{Code::out_of_memory, "pool `" + pool.id + "`: cannot allocate " + std::to_string(pool.bytes) + " bytes"};
    bytes_ += pool.bytes;
  }
  for (const uint64_t bytes : plan_.host_bytes()) swapped_.emplace_back(bytes);
  calls_.resize(plan_.steps.size());
  return kOk;
}

uint64_t Instance::upload() {
  uint64_t bytes = 0;
  for (const Buffer& buffer : plan_.buffers) {
    if (!buffer.blob_offset || !pools_[buffer.pool]) continue;
    std::byte* to = buffer.offloaded ? swapped_[static_cast<size_t>(&buffer - plan_.buffers.data())].data() : address(buffer);
    std::memcpy(to, bundle_.content(buffer), buffer.bytes);
    bytes += buffer.bytes;
  }
  return bytes;
}

Status Instance::make_calls() {
  for (const Step& step : plan_.steps) {
    if (step.kind == Step::Kind::dispatch)
      if (auto error = make_call(step)) {
        error->message = "step " + std::to_string(step.index) + ", " + error->message;
        error->step = step.layer;
        return error;
      }
  }
  return kOk;
}

Status Instance::make_call(const Step& step) {
  const Program& program = plan_.programs[step.program];
  Prepared& prepared = calls_[step.index];
  prepared.operation = find_operation(program.kernel);
  if (prepared.operation == nullptr)
    return Error{Code::plan_invalid, "unknown CPU operation `" + program.kernel + "`; there are: " + operation_names()};
  const Operation& operation = *prepared.operation;
  std::vector<std::string> names;  // of the buffers
  for (const Argument& argument : step.arguments) {
    if (argument.kind == Parameter::Kind::i32) prepared.call.ints.push_back(argument.i32);
    if (argument.kind == Parameter::Kind::f32) prepared.call.floats.push_back(argument.f32);
    if (argument.kind != Parameter::Kind::buffer) continue;
    const Buffer& buffer = plan_.buffers[argument.buffer];
    const uint64_t size = size_of(buffer.type), offset = pools_[buffer.pool] ? buffer.offset : *buffer.blob_offset;
    if (argument.begin % size != 0 || offset % size != 0)
      return Error{Code::plan_invalid, program.kernel + ": buffer `" + buffer.id + "` or a part of it begins at byte " +
                                           std::to_string(offset + argument.begin) + ", inside of a number of " +
                                           std::to_string(size) + " bytes"};
    prepared.call.buffers.push_back({address(buffer) + argument.begin, buffer.type,
                                     static_cast<int64_t>((argument.end - argument.begin) / size)});
    names.push_back(buffer.id);
  }
  const Call& call = prepared.call;
  if (call.buffers.size() != operation.buffers || call.ints.size() != operation.ints || call.floats.size() != operation.floats)
    return Error{Code::plan_invalid, program.kernel + ": takes " + std::to_string(operation.buffers) + " buffers, " +
                                         std::to_string(operation.ints) + " i32, " + std::to_string(operation.floats) +
                                         " f32; the plan gives " + std::to_string(call.buffers.size()) + ", " +
                                         std::to_string(call.ints.size()) + ", " + std::to_string(call.floats.size())};
  if (const size_t wrong = wrong_buffer(operation, call); wrong < names.size())
    return Error{Code::plan_invalid, program.kernel + ": buffer `" + names[wrong] + "`, argument " + std::to_string(wrong) +
                                         ", holds " + word(call.buffers[wrong].type) + ", which the operation does not take there"};
  Status error = operation.check(call);
  if (error) error->message = program.kernel + ": " + error->message;
  return error;
}

void Instance::execute(const Step& step, ThreadPool& pool) {
  const Buffer& source = plan_.buffers[step.source];
  switch (step.kind) {
    case Step::Kind::dispatch: calls_[step.index].operation->run(calls_[step.index].call, pool); break;
    case Step::Kind::copy:
      std::memcpy(address(plan_.buffers[step.target]) + step.target_offset, address(source) + step.source_offset,
                  step.bytes);
      break;
    case Step::Kind::swap_out: std::memcpy(swapped_[step.target].data(), address(source), step.bytes); break;
    case Step::Kind::swap_in: std::memcpy(address(source), swapped_[step.target].data(), step.bytes); break;
    case Step::Kind::transfer: break;  // of no plan of one side
  }
}

}  // namespace pocketfarm::cpu
