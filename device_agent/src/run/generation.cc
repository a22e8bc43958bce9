#include "generation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "checkpoint.h"
#include "system/clock.h"
#include "system/files.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxTokenBytes = size_t{64} << 20;

Status write_whole(Backend& backend, const Buffer& buffer, const std::vector<int64_t>& numbers) {
  if (buffer.type == Type::i64) return backend.write(buffer, numbers.data(), numbers.size() * sizeof(int64_t));
  const std::vector<int32_t> narrow(numbers.begin(), numbers.end());
  return backend.write(buffer, narrow.data(), narrow.size() * sizeof(int32_t));
}

}  // namespace

Result<Generation> Generation::open(const Plan& plan, Backend& backend, Journal& journal, const Args& args) {
  Generation made(plan, backend, journal, args);
  const auto content = read_file(args.tokens, kMaxTokenBytes);
  if (!content) return content.error();
  made.given_.resize(content->size() / sizeof(int64_t));
  std::memcpy(made.given_.data(), content->data(), made.given_.size() * sizeof(int64_t));
  const auto fail = [&](const std::string& what) { return Error{Code::usage, args.tokens + ": " + what}; };
  const auto count = static_cast<int64_t>(made.given_.size());
  if (content->size() % sizeof(int64_t) != 0 || count <= args.context)
    return fail(std::to_string(content->size()) + " bytes; give whole numbers of 64 bits, more than the --context of " + std::to_string(args.context));
  if (count + args.generate - 1 > plan.capacity)
    return fail(std::to_string(count) + " tokens and " + std::to_string(args.generate) + " that are generated; the plan holds " + std::to_string(plan.capacity));
  for (const int64_t token : made.given_)
    if (token < 0 || token >= plan.passes.back().vocabulary)
      return fail("token " + std::to_string(token) + "; the vocabulary has " + std::to_string(plan.passes.back().vocabulary));
  return made;
}

Result<int64_t> Generation::sample(const char* phase, int index) {
  if (auto error = clear_states(plan_, backend_)) return *error;
  text_ = given_;
  const auto context = static_cast<size_t>(args_.context);
  if (auto error = take(0, context)) return *error;
  std::vector<int64_t> tokens, token_ns;
  computed_ = 0;
  const int64_t start_ns = boottime_ns();
  if (auto error = take(context, text_.size())) return *error;
  const int64_t computed = computed_;
  while (true) {
    const auto token = best();
    if (!token) return token.error();
    tokens.push_back(*token);
    token_ns.push_back(boottime_ns());
    if (static_cast<int>(tokens.size()) == args_.generate) break;
    text_.push_back(*token);
    if (auto error = take(text_.size() - 1, text_.size())) return *error;
  }
  const int64_t duration_ns = token_ns.back() - start_ns;
  journal_.note("sample", JsonObject()
                              .set("index", index)
                              .set("phase", phase)
                              .set("start_ns", start_ns)
                              .set("duration_ns", duration_ns)
                              .set("context", args_.context)
                              .set("prompt", given_.size() - context)
                              .set("computed", computed)
                              .set("tokens", tokens)
                              .set("token_ns", token_ns));
  journal_.flush_after(0);
  if (auto error = journal_.status()) return *error;
  return duration_ns;
}

// By the smallest pass that takes all, else by the largest that fits. Of one with a row of logits for each token, what is behind the
// last token does not count; one with a single row ends with the last token, and computes some before again.
const Pass& Generation::next(int64_t begin, int64_t end) const {
  const int64_t rest = end - begin;
  const Pass* chosen = &plan_.passes.back();
  for (const Pass& pass : plan_.passes) {
    if (pass.tokens > (pass.rows == 1 ? end : plan_.capacity - begin)) continue;
    const bool takes_all = pass.tokens >= rest, took_all = chosen->tokens >= rest;
    if (takes_all != took_all ? takes_all : takes_all == (pass.tokens < chosen->tokens)) chosen = &pass;
  }
  return *chosen;
}

Status Generation::take(size_t begin, size_t end) {
  while (begin < end) {
    const auto rest = static_cast<int64_t>(end - begin);
    const Pass* chosen = &next(static_cast<int64_t>(begin), static_cast<int64_t>(end));
    if (chosen->rows == 1 && chosen->tokens > rest) begin = end - static_cast<size_t>(chosen->tokens);
    row_ = std::min(static_cast<int64_t>(end - begin), chosen->tokens);
    std::vector<int64_t> ids(text_.begin() + static_cast<int64_t>(begin), text_.begin() + static_cast<int64_t>(begin) + row_);
    ids.resize(static_cast<size_t>(chosen->tokens));
    if (auto error = write_whole(backend_, plan_.buffers[chosen->ids], ids)) return error;
    if (auto error = write_whole(backend_, plan_.buffers[chosen->position], {static_cast<int64_t>(begin)})) return error;
    if (auto error = backend_.run_batches(plan_.stages[chosen->stage], 1)) return error;
    begin += static_cast<size_t>(row_--);
    computed_ += chosen->tokens;
    last_ = chosen;
  }
  return kOk;
}

Result<int64_t> Generation::best() const {
  const auto width = static_cast<size_t>(last_->vocabulary), first = last_->rows == 1 ? 0 : static_cast<size_t>(row_) * width;
  const Buffer& buffer = plan_.buffers[last_->logits];
  std::vector<float> copy;
  const auto* logits = static_cast<const float*>(backend_.address(buffer));
  if (logits == nullptr) {
    copy.resize(first + width);
    if (auto error = backend_.read(buffer, copy.data(), copy.size() * sizeof(float))) return *error;
    logits = copy.data();
  }
  const float* row = logits + first;
  if (std::any_of(row, row + width, [](float x) { return std::isnan(x); }))
    return Error{Code::internal, "token " + std::to_string(text_.size()) + ": its logits are NaN"};
  return std::max_element(row, row + width) - row;
}

}  // namespace pocketfarm
