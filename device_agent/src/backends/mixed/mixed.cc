#include "backends/open.h"

#include <mutex>

#include "backends/cpu/threads/pipeline.h"
#include "plan/plan_parts.h"
#include "system/clock.h"

namespace pocketfarm {
namespace {

class MixedBackend final : public Backend {
 public:
  MixedBackend(std::unique_ptr<Backend> own, std::unique_ptr<Backend> cpu, bool across) : across_(across) {
    sides_[false] = std::move(own);
    sides_[true] = std::move(cpu);
  }

  const ApiFacts& facts() const override { return sides_[false]->facts(); }
  int threads() const override { return sides_[true]->threads(); }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override {
    return side(index(buffer)).write(own(index(buffer)), data, bytes);
  }
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override {
    return side(index(buffer)).read(own(index(buffer)), data, bytes);
  }
  Status run() override { return run_stream(1, {}); }
  Status run_batches(const Stage& stage, int64_t count) override;
  Status prepare_stream(const Frames& frames, SetupLog& log) override;
  Status run_stream(int count, const Frames& frames) override;
  Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) override;
  uint64_t device_bytes() const override { return sides_[false]->device_bytes() + sides_[true]->device_bytes(); }

 private:
  using Held = std::vector<std::vector<std::byte>>;  // what each transfer has taken of a frame

  size_t index(const Buffer& buffer) const { return static_cast<size_t>(&buffer - plan_->buffers.data()); }
  Backend& side(size_t buffer) { return *sides_[plan_->beside(buffer)]; }
  const Buffer& own(size_t buffer) const { return bundles_[plan_->beside(buffer)].plan.buffers[parts_.buffers[buffer]]; }
  Held held() const;
  Status move(const PlanTransfer& transfer, Held& held, bool out);
  Status transfer(const PlanTransfer& transfer);
  Status execute(size_t segment);
  // Steps [begin, end) one after the other, each transfer at its place among them.
  Status in_order(size_t begin, size_t end);
  // All of a segment: what comes in, its steps, what goes out.
  Status visit(size_t segment, int64_t frame, Held& held, const Frames& frames);
  Status run_across(int count, const Frames& frames);

  const bool across_;
  std::unique_ptr<Backend> sides_[2];
  const Plan* plan_ = nullptr;
  PlanParts parts_;
  std::vector<Bundle> bundles_;
  std::vector<Held> slots_;  // of a frame under way each; the first is that of streams without a pipeline
  std::vector<std::byte> copy_;  // on the way from one buffer of the device to another
  std::unique_ptr<cpu::Pipeline> pipeline_;
  std::vector<int64_t>* profile_ = nullptr;  // time of each step, where it is asked for
};

Status MixedBackend::prepare(const Bundle& bundle, SetupLog& log) {
  plan_ = &bundle.plan;
  auto parts = PlanParts::of(bundle.plan);
  if (!parts) return parts.error();
  parts_ = std::move(*parts);
  for (const bool beside : {false, true}) {
    if (auto error = check_limits(parts_.sides[beside], sides_[beside]->facts())) return error;
    bundles_.push_back(bundle.part(std::move(parts_.sides[beside])));
  }
  for (const bool beside : {false, true})
    if (auto error = sides_[beside]->prepare(bundles_[beside], log)) return error;
  if (plan_->stages.empty()) slots_.push_back(held());
  return kOk;
}

MixedBackend::Held MixedBackend::held() const {
  Held out;
  for (const PlanTransfer& transfer : parts_.transfers) out.emplace_back(transfer.bytes);
  return out;
}

// Both halves of a transfer count as its time.
Status MixedBackend::move(const PlanTransfer& transfer, Held& held, bool out) {
  const int64_t start_ns = boottime_ns();
  auto& content = held[static_cast<size_t>(&transfer - parts_.transfers.data())];
  Status error = out ? side(transfer.source).read(own(transfer.source), content.data(), transfer.bytes)
                     : side(transfer.target).write(own(transfer.target), content.data(), transfer.bytes);
  if (profile_ != nullptr) (*profile_)[transfer.step] += boottime_ns() - start_ns;
  return error;
}

// At once: the side that is the host's is read and written where it lies.
Status MixedBackend::transfer(const PlanTransfer& transfer) {
  const int64_t start_ns = boottime_ns();
  const Buffer &source = own(transfer.source), &target = own(transfer.target);
  Backend &from = side(transfer.source), &to = side(transfer.target);
  Status error;
  if (void* there = to.address(target)) {
    error = from.read(source, there, transfer.bytes);
  } else if (const void* here = from.address(source)) {
    error = to.write(target, here, transfer.bytes);
  } else {
    copy_.resize(transfer.bytes);
    error = from.read(source, copy_.data(), transfer.bytes);
    if (!error) error = to.write(target, copy_.data(), transfer.bytes);
  }
  if (profile_ != nullptr) (*profile_)[transfer.step] += boottime_ns() - start_ns;
  return error;
}

Status MixedBackend::in_order(size_t begin, size_t end) {
  for (const PlanTurn& turn : parts_.turns)
    if (turn.step >= begin && turn.step < end)
      if (auto error = turn.transfer ? transfer(parts_.transfers[turn.index]) : execute(turn.index)) return error;
  return kOk;
}

Status MixedBackend::run_batches(const Stage& stage, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (auto error = in_order(stage.begin, stage.end)) return error;
  return kOk;
}

Status MixedBackend::execute(size_t segment) {
  const PlanSegment& each = parts_.segments[segment];
  const Plan& plan = bundles_[each.beside].plan;
  const Stage& stage = plan.stages[each.stage];
  if (profile_ == nullptr) return sides_[each.beside]->run_batches(stage, 1);
  std::vector<int64_t> step_ns(plan.steps.size(), 0);
  if (auto error = sides_[each.beside]->run_profiled(stage.begin, stage.end, step_ns)) return error;
  for (size_t i = stage.begin; i < stage.end; ++i) (*profile_)[parts_.steps[each.beside][i]] = step_ns[i];
  return kOk;
}

Status MixedBackend::visit(size_t segment, int64_t frame, Held& held, const Frames& frames) {
  for (size_t i = 0; frames.moved && i < frames.inputs.size(); ++i)
    if (const Frames::Item& item = frames.inputs[i]; parts_.inputs[i] == segment)
      if (auto error = write(*item.buffer, item.frame(frame % frames.count), item.bytes)) return error;
  for (const PlanTransfer& transfer : parts_.transfers)
    if (transfer.first && transfer.from == segment)
      if (auto error = move(transfer, held, true)) return error;
  for (const PlanTransfer& transfer : parts_.transfers)
    if (transfer.to == segment)
      if (auto error = move(transfer, held, false)) return error;
  if (auto error = execute(segment)) return error;
  for (const PlanTransfer& transfer : parts_.transfers)
    if (!transfer.first && transfer.from == segment)
      if (auto error = move(transfer, held, true)) return error;
  for (size_t i = 0; frames.moved && i < frames.outputs.size(); ++i)
    if (const Frames::Item& item = frames.outputs[i]; parts_.outputs[i] == segment)
      if (auto error = read(*item.buffer, item.frame(frame % frames.count), item.bytes)) return error;
  return kOk;
}

// Each side is a stage with a thread of its own: nothing of a side is called by two threads at a time,
// and a segment's memory is its own: it may compute a frame while another computes the next.
Status MixedBackend::prepare_stream(const Frames&, SetupLog& log) {
  if (!across_) return kOk;
  if (!parts_.shared.empty())
    return Error{Code::plan_invalid, "several segments use the buffer `" + plan_->buffers[parts_.shared.front()].id +
                                         "`, which holds one frame: this plan runs without `--pipeline across`"};
  const int64_t start_ns = boottime_ns();
  std::vector<cpu::Segment> route;
  for (size_t i = 0; i < parts_.segments.size(); ++i)
    route.push_back({parts_.segments[i].beside == parts_.segments[0].beside ? size_t{0} : size_t{1}, i, i + 1});
  pipeline_ = std::make_unique<cpu::Pipeline>(std::move(route), std::vector<int>(), false);
  while (slots_.size() < pipeline_->slots()) slots_.push_back(held());
  log.record("pipeline", start_ns, std::to_string(parts_.segments.size()) + " segments on two APIs");
  return kOk;
}

Status MixedBackend::run_across(int count, const Frames& frames) {
  std::mutex mutex;
  Status failed;
  pipeline_->run(count, [&](int64_t frame, size_t slot, const cpu::Segment& segment, cpu::ThreadPool&) {
    {
      const std::lock_guard lock(mutex);
      if (failed) return;
    }
    if (auto error = visit(segment.begin, frame, slots_[slot], frames)) {
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::move(error);
    }
  });
  return failed;
}

Status MixedBackend::run_stream(int count, const Frames& frames) {
  if (pipeline_ && count > 1) return run_across(count, frames);
  for (int64_t frame = 0; frame < count && !frames.moved; ++frame)
    if (auto error = in_order(0, plan_->steps.size())) return error;
  for (int64_t frame = 0; frame < count && frames.moved; ++frame)
    for (size_t segment = 0; segment < parts_.segments.size(); ++segment)
      if (auto error = visit(segment, frame, slots_.front(), frames)) return error;
  return kOk;
}

Status MixedBackend::run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) {
  profile_ = &step_ns;
  Status error = in_order(begin, end);
  profile_ = nullptr;
  return error;
}

}  // namespace

std::unique_ptr<Backend> make_mixed(std::unique_ptr<Backend> own, std::unique_ptr<Backend> cpu, bool across) {
  return std::make_unique<MixedBackend>(std::move(own), std::move(cpu), across);
}

}  // namespace pocketfarm
