// Inputs into a backend, outputs out of it and into files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "files.h"
#include "journal.h"

namespace pocketfarm {

// The input files of one run, checked against the plan's ports.
class Inputs {
 public:
  using Named = std::vector<std::pair<std::string, std::string>>;  // port, file

  // `usage` for a name that the plan lacks or an input that is missing, `io`, `plan_invalid` for a wrong size.
  static Result<Inputs> open(const Plan& plan, const Named& files);
  Status write(Backend& backend) const;
  uint64_t bytes() const;

 private:
  struct Item {
    const Buffer* buffer;
    std::string content;
  };
  std::vector<Item> items_;
};

// Reads every output, writes `folder`/<n>.bin (no files where `folder` is empty) and an `output` event each.
Status write_outputs(const Plan& plan, Backend& backend, const std::string& folder, Journal& journal, SetupLog& log);

}  // namespace pocketfarm
