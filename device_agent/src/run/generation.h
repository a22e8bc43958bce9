// A plan that generates text: a sample is a prompt, which is taken in pieces, and the tokens behind it, one by one.
#pragma once

#include "sampling.h"
#include "system/args.h"

namespace pocketfarm {

class Generation final : public Samples {
 public:
  // Reads the tokens: `--context` of them are taken before the clock starts, the others are the prompt. `usage` for tokens that
  // the vocabulary or the plan's variables do not hold.
  static Result<Generation> open(const Plan& plan, Backend& backend, Journal& journal, const Args& args);

  // One prompt and its answer. The largest logit is taken, the first of several; an end of the text is a token as others are.
  Result<int64_t> sample(const char* phase, int index) override;

 private:
  Generation(const Plan& plan, Backend& backend, Journal& journal, const Args& args) : plan_(plan), backend_(backend), journal_(journal), args_(args) {}

  // Takes tokens [begin, end) of the text.
  Status take(size_t begin, size_t end);
  const Pass& next(int64_t begin, int64_t end) const;
  Result<int64_t> best() const;

  const Plan& plan_;
  Backend& backend_;
  Journal& journal_;
  const Args& args_;
  std::vector<int64_t> given_, text_;
  const Pass* last_ = nullptr;  // the pass that ran, and its last row that counts
  int64_t row_ = 0;
  int64_t computed_ = 0;  // tokens of the passes that ran
};

}  // namespace pocketfarm
