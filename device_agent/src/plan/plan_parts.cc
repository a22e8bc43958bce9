#include "plan_parts.h"

#include <algorithm>

namespace pocketfarm {
namespace {

bool is_transfer(const Step& step) { return step.kind == Step::Kind::transfer; }

// Buffers that a step names.
std::vector<size_t> touched(const Step& step) {
  if (step.kind != Step::Kind::dispatch) return {step.source, step.target};
  std::vector<size_t> out;
  for (const Argument& argument : step.arguments)
    if (argument.kind == Parameter::Kind::buffer) out.push_back(argument.buffer);
  return out;
}

class Divider {
 public:
  explicit Divider(const Plan& plan) : plan_(plan) {}

  Result<PlanParts> divide();

 private:
  void share_out();
  void add(const Step& step);
  Status connect(const std::vector<size_t>& begun);
  bool begins_stage(const Step& step) const {
    return std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) { return stage.begin == step.index; });
  }
  bool side_of(const Step& step) const {
    return step.kind == Step::Kind::dispatch ? plan_.programs[step.program].beside : plan_.beside(step.source);
  }
  // Of the segments from `first` on, the first that touches a buffer; their number: none does.
  size_t user_of(size_t buffer, size_t first) const;

  const Plan& plan_;
  PlanParts out_;
  std::vector<size_t> pools_, programs_;
  bool closed_ = true;                       // the next step begins a segment
  std::vector<std::vector<size_t>> users_;  // buffer -> segments that touch it, in order
};

void Divider::share_out() {
  for (const bool beside : {false, true}) {
    out_.sides[beside].name = plan_.name;
    out_.sides[beside].hash = plan_.hash;
    out_.sides[beside].api = beside ? Api::cpu : plan_.api;
    out_.sides[beside].blob_bytes = plan_.blob_bytes;
  }
  out_.sides[false].precision = plan_.precision;
  out_.sides[false].needs = plan_.needs;
  for (const Pool& pool : plan_.pools) {
    std::vector<Pool>& pools = out_.sides[pool.beside].pools;
    pools_.push_back(pools.size());
    pools.push_back(pool);
  }
  for (const Program& program : plan_.programs) {
    std::vector<Program>& programs = out_.sides[program.beside].programs;
    programs_.push_back(programs.size());
    programs.push_back(program);
  }
  for (const Buffer& buffer : plan_.buffers) {
    std::vector<Buffer>& buffers = out_.sides[plan_.pools[buffer.pool].beside].buffers;
    out_.buffers.push_back(buffers.size());
    buffers.push_back(buffer);
    buffers.back().pool = pools_[buffer.pool];
  }
}

void Divider::add(const Step& step) {
  const bool beside = side_of(step);
  Plan& side = out_.sides[beside];
  if (closed_ || out_.segments.back().beside != beside) {
    out_.turns.push_back({false, out_.segments.size(), step.index});
    out_.segments.push_back({beside, side.stages.size()});
    Stage stage;
    stage.begin = side.steps.size();
    side.stages.push_back(stage);
    closed_ = false;
  }
  for (const size_t buffer : touched(step)) users_[buffer].push_back(out_.segments.size() - 1);
  Step own = step;
  own.index = side.steps.size();
  if (step.kind == Step::Kind::dispatch) {
    own.program = programs_[step.program];
    for (Argument& argument : own.arguments)
      if (argument.kind == Parameter::Kind::buffer) argument.buffer = out_.buffers[argument.buffer];
  } else {
    own.source = out_.buffers[step.source];
    own.target = out_.buffers[step.target];
  }
  side.steps.push_back(std::move(own));
  side.stages.back().end = side.steps.size();
  out_.steps[beside].push_back(step.index);
}

size_t Divider::user_of(size_t buffer, size_t first) const {
  for (const size_t segment : users_[buffer])
    if (segment >= first) return segment;
  return out_.segments.size();
}

// From which segment to which each transfer leads. `begun`: the segments before it.
Status Divider::connect(const std::vector<size_t>& begun) {
  for (size_t i = 0; i < begun.size(); ++i) {
    PlanTransfer& transfer = out_.transfers[i];
    const auto before = std::count_if(users_[transfer.source].begin(), users_[transfer.source].end(),
                                      [&](size_t segment) { return segment < begun[i]; });
    transfer.first = before == 0;
    transfer.from = before == 0 ? user_of(transfer.source, 0) : users_[transfer.source][static_cast<size_t>(before) - 1];
    transfer.to = user_of(transfer.target, begun[i]);
    if (transfer.from >= out_.segments.size() || transfer.to >= out_.segments.size() ||
        transfer.to < transfer.from + (transfer.first ? 0 : 1))
      return Error{Code::plan_invalid, "step " + std::to_string(transfer.step) + ": the transfer from `" +
                                           plan_.buffers[transfer.source].id + "` to `" +
                                           plan_.buffers[transfer.target].id +
                                           "` does not lead from one segment to a later one"};
  }
  return kOk;
}

Result<PlanParts> Divider::divide() {
  users_.resize(plan_.buffers.size());
  share_out();
  std::vector<size_t> begun;  // of each transfer: the segments before it
  for (const Step& step : plan_.steps) {
    closed_ = closed_ || begins_stage(step);
    if (is_transfer(step)) {
      out_.turns.push_back({true, out_.transfers.size(), step.index});
      out_.transfers.push_back({step.index, step.source, step.target, step.bytes});
      begun.push_back(out_.segments.size());
      closed_ = true;
    } else {
      add(step);
    }
  }
  if (plan_.stages.empty())
    if (auto error = connect(begun)) return *error;
  const size_t last = out_.segments.empty() ? 0 : out_.segments.size() - 1;
  for (const Port& port : plan_.inputs) out_.inputs.push_back(std::min(user_of(port.buffer, 0), last));
  for (const Port& port : plan_.outputs)
    out_.outputs.push_back(users_[port.buffer].empty() ? last : users_[port.buffer].back());
  for (size_t i = 0; i < users_.size(); ++i)
    if (!plan_.buffers[i].blob_offset && !users_[i].empty() && users_[i].front() != users_[i].back()) out_.shared.push_back(i);
  return std::move(out_);
}

}  // namespace

bool Plan::mixed() const {
  return std::any_of(pools.begin(), pools.end(), [](const Pool& pool) { return pool.beside; }) ||
         std::any_of(programs.begin(), programs.end(), [](const Program& program) { return program.beside; }) ||
         std::any_of(steps.begin(), steps.end(), is_transfer);
}

Result<PlanParts> PlanParts::of(const Plan& plan) { return Divider(plan).divide(); }

}  // namespace pocketfarm
