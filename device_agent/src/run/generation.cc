#include "generation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

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

// The first of the largest numbers; -1: one is NaN. Each of kLanes numbers is compared with its own, so that compilers take
// vectors: a vocabulary has a hundred thousand, and a token waits for them.
constexpr size_t kLanes = 16;

int64_t largest(const float* row, size_t width) {
  std::array<float, kLanes> most;
  std::array<int, kLanes> odd{};
  most.fill(row[0]);
  const size_t whole = width / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = row[i + lane];
      odd[lane] |= x != x;
      most[lane] = x > most[lane] ? x : most[lane];
    }
  for (size_t i = whole; i < width; ++i) {
    odd[0] |= row[i] != row[i];
    most[0] = std::max(most[0], row[i]);
  }
  if (std::any_of(odd.begin(), odd.end(), [](int any) { return any != 0; })) return -1;
  const float found = *std::max_element(most.begin(), most.end());
  for (size_t i = 0; i < whole; i += kLanes) {
    int any = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) any |= row[i + lane] == found;
    if (any != 0) return std::find(row + i, row + i + kLanes, found) - row;
  }
  return std::find(row + whole, row + width, found) - row;
}

// The natural logarithm of what softmax gives a token, in double precision; NaN where a logit is.
double log_probability(const float* row, size_t width, int64_t token) {
  if (largest(row, width) < 0) return std::numeric_limits<double>::quiet_NaN();
  const double most = *std::max_element(row, row + width);
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += std::exp(row[i] - most);
  return row[token] - most - std::log(sum);
}

}  // namespace

Result<Generation> Generation::open(const Plan& plan, Backend& backend, Journal& journal, const Args& args) {
  Generation made(plan, backend, journal, args);
  const auto content = read_file(args.tokens, kMaxTokenBytes);
  if (!content) return content.error();
  const auto fail = [&](const std::string& what) { return Error{Code::usage, args.tokens + ": " + what}; };
  const size_t bytes = content->size() / static_cast<size_t>(plan.sequences);  // of a sequence
  const auto count = static_cast<int64_t>(bytes / sizeof(int64_t));
  if (content->size() % (static_cast<size_t>(plan.sequences) * sizeof(int64_t)) != 0 || count <= args.context)
    return fail(std::to_string(content->size()) + " bytes; give whole numbers of 64 bits, more than the --context of " + std::to_string(args.context) +
                (plan.sequences == 1 ? "" : ", as many for each of " + std::to_string(plan.sequences) + " sequences"));
  if (plan.sequences > 1 && args.generate == 0)
    return fail("--generate is 0, and probabilities are told of a single sequence: give --generate N, or a plan of one");
  for (int64_t sequence = 0; sequence < plan.sequences; ++sequence) {
    made.given_.emplace_back(static_cast<size_t>(count));
    std::memcpy(made.given_.back().data(), content->data() + static_cast<size_t>(sequence) * bytes, bytes);
  }
  if (count + std::max(args.generate, 1) - 1 > plan.capacity)
    return fail(std::to_string(count) + " tokens and " + std::to_string(args.generate) + " that are generated; the plan holds " + std::to_string(plan.capacity));
  for (const auto& sequence : made.given_)
    for (const int64_t token : sequence)
      if (token < 0 || token >= plan.passes.back().vocabulary)
        return fail("token " + std::to_string(token) + "; the vocabulary has " + std::to_string(plan.passes.back().vocabulary));
  return made;
}

Status Generation::begin(size_t context) {
  computed_ = 0;
  if (!args_.resume.empty()) return read_checkpoint(args_.resume, plan_, backend_);
  if (auto error = clear_states(plan_, backend_)) return error;
  auto error = take(0, context);
  computed_ = 0;
  return error;
}

Status Generation::store() {
  if (args_.checkpoint.empty()) return kOk;
  return write_checkpoint(args_.checkpoint, plan_, backend_, journal_, "tokens", static_cast<int64_t>(texts_.front().size()));
}

Result<Generation::Answer> Generation::answer(size_t count, size_t context, int generate) {
  if (count > given() || static_cast<int64_t>(count) + generate - 1 > plan_.capacity)
    return Error{Code::usage, "a prompt of " + std::to_string(count) + " tokens and an answer of " + std::to_string(generate) + "; there are " +
                                  std::to_string(given()) + " tokens, and the plan holds " + std::to_string(plan_.capacity)};
  texts_ = given_;
  for (auto& text : texts_) text.resize(count);
  if (auto error = begin(context)) return *error;
  Answer answer{boottime_ns(), 0, std::vector<std::vector<int64_t>>(texts_.size()), {}};
  if (auto error = take(context, count)) return *error;
  answer.computed = computed_;
  while (true) {
    const auto tokens = best();
    if (!tokens) return tokens.error();
    for (size_t i = 0; i < texts_.size(); ++i) answer.tokens[i].push_back((*tokens)[i]);
    answer.token_ns.push_back(boottime_ns());
    if (static_cast<int>(answer.token_ns.size()) == generate || is_hot()) return answer;
    for (size_t i = 0; i < texts_.size(); ++i) texts_[i].push_back((*tokens)[i]);
    const size_t taken = texts_.front().size();
    if (auto error = take(taken - 1, taken)) return *error;
  }
}

Result<int64_t> Generation::sample(const char* phase, int index) {
  if (args_.generate == 0) return score(phase, index);
  const auto context = static_cast<size_t>(args_.context);
  const auto made = answer(given(), context, args_.generate);
  if (!made) return made.error();
  const int64_t duration_ns = made->token_ns.back() - made->start_ns;
  std::vector<int64_t> tokens;  // of one sequence after the other
  for (const auto& each : made->tokens) tokens.insert(tokens.end(), each.begin(), each.end());
  JsonObject told;
  told.set("index", index)
      .set("phase", phase)
      .set("start_ns", made->start_ns)
      .set("duration_ns", duration_ns)
      .set("context", args_.context)
      .set("prompt", given() - context)
      .set("computed", made->computed)
      .set("tokens", tokens)
      .set("token_ns", made->token_ns);
  if (plan_.sequences > 1) told.set("sequences", plan_.sequences);
  journal_.note("sample", told);
  journal_.flush_after(0);
  if (auto error = journal_.status()) return *error;
  return duration_ns;
}

Result<int64_t> Generation::score(const char* phase, int index) {
  for (const Pass& pass : plan_.passes)
    if (pass.rows != pass.tokens)
      return Error{Code::usage, "the plan gives the last token's logits alone, and --generate is 0: give --generate N, or a plan that gives each token's"};
  texts_ = given_;
  if (auto error = begin(static_cast<size_t>(args_.context))) return *error;
  std::vector<double> scores;
  const int64_t start_ns = boottime_ns();
  if (auto error = take(static_cast<size_t>(args_.context), given(), &scores)) return *error;
  const int64_t duration_ns = boottime_ns() - start_ns;
  journal_.note("sample", JsonObject()
                              .set("index", index)
                              .set("phase", phase)
                              .set("start_ns", start_ns)
                              .set("duration_ns", duration_ns)
                              .set("context", args_.context)
                              .set("prompt", given() - static_cast<size_t>(args_.context))
                              .set("computed", computed_)
                              .set("log_probabilities", scores));
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

Status Generation::take(size_t begin, size_t end, std::vector<double>* scores) {
  while (begin < end) {
    const auto rest = static_cast<int64_t>(end - begin);
    const Pass* chosen = &next(static_cast<int64_t>(begin), static_cast<int64_t>(end));
    if (chosen->rows == 1 && chosen->tokens > rest) begin = end - static_cast<size_t>(chosen->tokens);
    row_ = std::min(static_cast<int64_t>(end - begin), chosen->tokens);
    std::vector<int64_t> ids;
    for (const auto& text : texts_) {
      const auto first = text.begin() + static_cast<int64_t>(begin);
      ids.insert(ids.end(), first, first + row_);
      ids.resize(ids.size() + static_cast<size_t>(chosen->tokens - row_));
    }
    if (auto error = write_whole(backend_, plan_.buffers[chosen->ids], ids)) return error;
    const Buffer& position = plan_.buffers[chosen->position];
    const std::vector<int64_t> positions(std::min<size_t>(texts_.size(), position.bytes / size_of(position.type)), static_cast<int64_t>(begin));
    if (auto error = write_whole(backend_, position, positions)) return error;
    if (auto error = backend_.run_batches(plan_.stages[chosen->stage], 1)) return error;
    const size_t first = begin + 1;
    begin += static_cast<size_t>(row_--);
    computed_ += chosen->tokens;
    last_ = chosen;
    if (scores == nullptr) continue;
    const auto logits = rows();
    if (!logits) return logits.error();
    const auto width = static_cast<size_t>(chosen->vocabulary);
    const auto& text = texts_.front();
    for (size_t i = first; i <= std::min(begin, text.size() - 1); ++i) {
      scores->push_back(log_probability(*logits + (i - first) * width, width, text[i]));
      if (std::isnan(scores->back())) return Error{Code::internal, "token " + std::to_string(i) + ": its logits are NaN"};
    }
  }
  return kOk;
}

Result<const float*> Generation::rows() {
  const Buffer& buffer = plan_.buffers[last_->logits];
  const auto* logits = static_cast<const float*>(backend_.address(buffer));
  if (logits != nullptr) return logits;
  const int64_t before = (plan_.sequences - 1) * last_->rows;  // of the other sequences
  logits_.resize(static_cast<size_t>(before + (last_->rows == 1 ? 0 : row_) + 1) * static_cast<size_t>(last_->vocabulary));
  if (auto error = backend_.read(buffer, logits_.data(), logits_.size() * sizeof(float))) return *error;
  return logits_.data();
}

Result<std::vector<int64_t>> Generation::best() {
  const auto logits = rows();
  if (!logits) return logits.error();
  const auto width = static_cast<size_t>(last_->vocabulary), rows = static_cast<size_t>(last_->rows);
  const auto last = last_->rows == 1 ? 0 : static_cast<size_t>(row_);
  std::vector<int64_t> found;
  for (size_t sequence = 0; sequence < texts_.size(); ++sequence) {
    found.push_back(largest(*logits + (sequence * rows + last) * width, width));
    if (found.back() < 0) return Error{Code::internal, "token " + std::to_string(texts_[sequence].size()) + ": its logits are NaN"};
  }
  return found;
}

}  // namespace pocketfarm
