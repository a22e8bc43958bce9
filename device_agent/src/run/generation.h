// A plan that generates text: a sample is a prompt, which is taken in pieces, and the tokens behind it, one by one; of none
// (`--generate 0`) the logarithms of the prompt's probabilities. A plan of several sequences takes as many texts of one length side
// by side, each token of all at once.
#pragma once

#include "sampling.h"
#include "system/args.h"

namespace pocketfarm {

class Generation final : public Samples {
 public:
  // Reads the tokens, one sequence's after the other's: `--context` of each are taken before the clock starts, the others are the
  // prompt. `usage` for tokens that the vocabulary or the plan's variables do not hold.
  static Result<Generation> open(const Plan& plan, Backend& backend, Journal& journal, const Args& args);

  // One prompt and its answer. The largest logit is taken, the first of several; an end of the text is a token as others are.
  Result<int64_t> sample(const char* phase, int index) override;

  struct Answer {
    int64_t start_ns = 0;  // of the prompt
    int64_t computed = 0;  // tokens of the passes that took it
    std::vector<std::vector<int64_t>> tokens;  // of each sequence
    std::vector<int64_t> token_ns;             // one for all sequences
  };
  // The same of the first `count` tokens of each sequence, of which `context` are taken before the clock starts. `usage` where there are not so many,
  // or the plan holds fewer.
  Result<Answer> answer(size_t count, size_t context, int generate);
  // Writes what the last answer left in the variables to `--checkpoint`, if there is one.
  Status store();
  // The tokens that each sequence is given.
  size_t given() const { return given_.front().size(); }

 private:
  Generation(const Plan& plan, Backend& backend, Journal& journal, const Args& args) : plan_(plan), backend_(backend), journal_(journal), args_(args) {}

  // Takes the first tokens of the text, or what an earlier run has left of them in `--resume`.
  Status begin(size_t context);
  Result<int64_t> score(const char* phase, int index);
  // Takes tokens [begin, end) of the texts; `scores` gets the logarithm of the probability of each of the first one behind `begin`,
  // of `end`, too.
  Status take(size_t begin, size_t end, std::vector<double>* scores = nullptr);
  const Pass& next(int64_t begin, int64_t end) const;
  // The rows of logits that the last pass left, as many as count, of the last sequence, too.
  Result<const float*> rows();
  // The token of each sequence that has the largest logit.
  Result<std::vector<int64_t>> best();

  const Plan& plan_;
  Backend& backend_;
  Journal& journal_;
  const Args& args_;
  std::vector<std::vector<int64_t>> given_, texts_;  // of each sequence
  std::vector<float> logits_;  // where the backend's memory cannot be read in place
  const Pass* last_ = nullptr;  // the pass that ran, and its last row that counts
  int64_t row_ = 0;
  int64_t computed_ = 0;  // tokens of the passes that ran
};

}  // namespace pocketfarm
