// A plan with its files, every SHA-256 verified.
#pragma once

#include <map>
#include <string>

#include "system/files.h"
#include "plan.h"
#include "system/status.h"

namespace pocketfarm {

struct Bundle {
  Plan plan;
  std::map<std::string, MappedFile> files;

  // Reads `folder`/plan.json and every file that it names. `plan_invalid`, `limit` or `io`.
  static Result<Bundle> read(const std::string& folder);

  std::string text(const std::string& file) const;
  // Initial content of a buffer that has a blob_offset.
  const std::byte* content(const Buffer& buffer) const { return files.at("blob.bin").data() + *buffer.blob_offset; }
};

}  // namespace pocketfarm
