// Inputs into a backend, outputs out of it and into files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "system/files.h"
#include "journal/journal.h"

namespace pocketfarm {

// The input files of one run, checked against the plan's ports. Of a stream a file may hold several frames.
class Inputs {
 public:
  using Named = std::vector<std::pair<std::string, std::string>>;  // port, file

  // `usage` for a name that the plan lacks or an input that is missing, `io`, `plan_invalid` for a wrong size.
  // `usage` also where inputs differ in their number of frames, or have several and `stream` is false.
  static Result<Inputs> open(const Plan& plan, const Named& files, bool stream);
  Status write(Backend& backend) const;
  uint64_t bytes() const;
  int64_t frames() const { return frames_; }
  // Frames to be moved by the inferences of a stream; pointers are into this.
  std::vector<Frames::Item> items();

 private:
  struct Item {
    const Buffer* buffer;
    uint64_t bytes;  // of one frame
    std::string content;
  };
  std::vector<Item> items_;
  int64_t frames_ = 1;
};

// The outputs of one run, in host memory: as many frames of each as there are of the inputs.
class Outputs {
 public:
  Outputs(const Plan& plan, int64_t frames);
  std::vector<Frames::Item> items();
  // Reads every output from the device, unless the stream has brought them all.
  Status read(Backend& backend, const Frames& frames, SetupLog& log);
  // Writes `folder`/<n>.bin (no files where `folder` is empty) and an `output` event each.
  Status write(const std::string& folder, Journal& journal) const;

 private:
  const Plan& plan_;
  std::vector<std::vector<std::byte>> contents_;
};

}  // namespace pocketfarm
