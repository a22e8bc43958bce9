// Lines of a stream, as they come.
#pragma once

#include <optional>
#include <string>

#include "files.h"
#include "status.h"

namespace pocketfarm {

class Lines {
 public:
  static constexpr size_t kLongest = 65536;

  // `path` names the stream in errors.
  Lines(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  // The next line without its end; nothing at the end of the stream, also in mid-line. `usage` for a line that is too long.
  Result<std::optional<std::string>> next();

 private:
  const Descriptor fd_;
  const std::string path_;
  std::string waiting_;
};

}  // namespace pocketfarm
