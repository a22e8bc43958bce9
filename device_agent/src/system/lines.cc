#include "lines.h"

namespace pocketfarm {

Result<std::optional<std::string>> Lines::next() {
  char block[4096];
  while (true) {
    if (const size_t end = waiting_.find('\n'); end != std::string::npos) {
      std::string line = waiting_.substr(0, end);
      waiting_.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    if (waiting_.size() > kLongest)
      return Error{Code::usage, path_ + ": a line of more than " + std::to_string(kLongest) + " bytes"};
    const auto got = read_some(fd_, block, sizeof block, path_);
    if (!got) return got.error();
    if (*got == 0) return std::optional<std::string>();
    waiting_.append(block, *got);
  }
}

}  // namespace pocketfarm
