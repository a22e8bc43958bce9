// A plan with its files, every SHA-256 verified.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system/files.h"
#include "plan.h"
#include "system/status.h"

namespace pocketfarm {

struct Bundle {
  Plan plan;
  std::shared_ptr<std::map<std::string, MappedFile>> files;  // shared with the parts

  // Reads `folder`/plan.json and every file that it names. `plan_invalid`, `limit` or `io`.
  static Result<Bundle> read(const std::string& folder);

  // Of a mixed plan: the plan of one side, with the same files.
  Bundle part(Plan side) const { return {std::move(side), files}; }
  std::string text(const std::string& file) const;
  // Initial content of a buffer that has a blob_offset. Whoever writes there changes this process's memory, not the file.
  std::byte* content(const Buffer& buffer) const { return files->at("blob.bin").data() + *buffer.blob_offset; }
};

}  // namespace pocketfarm
