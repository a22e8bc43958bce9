#include "bundle.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "system/sha256.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxPlanBytes = 64u << 20;

Status verify(const MappedFile& file, const std::string& path, const std::string& sha256) {
  const std::string actual = sha256_hex(file.data(), file.bytes());
  if (actual == sha256) return kOk;
  return Error{Code::plan_invalid, path + ": SHA-256 is " + actual.substr(0, 16) + "..., the plan says " +
                                       sha256.substr(0, 16) + "...; push the bundle again"};
}

Result<Plan> read_plan(const std::string& path) {
  const auto text = read_file(path, kMaxPlanBytes);
  if (!text) return text.error();
  return parse_plan(*text);
}

// What a plan was parsed from takes several times its text, which glibc keeps for itself.
void release_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

Result<Bundle> Bundle::read(const std::string& folder) {
  auto plan = read_plan(folder + "/plan.json");
  if (!plan) return plan.error();
  release_freed_memory();
  Bundle bundle{std::move(*plan), std::make_shared<std::map<std::string, MappedFile>>()};
  auto& files = *bundle.files;
  for (const auto& [name, sha256] : bundle.plan.files) {
    const std::string path = folder + "/" + name;
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    if (auto error = verify(*file, path, sha256)) return *error;
    files[name] = std::move(*file);
  }
  const auto blob = files.find("blob.bin");
  const uint64_t blob_bytes = blob == files.end() ? 0 : blob->second.bytes();
  if (blob_bytes != bundle.plan.blob_bytes)
    return Error{Code::plan_invalid, folder + "/blob.bin: " + std::to_string(blob_bytes) + " bytes, blob_bytes says " +
                                         std::to_string(bundle.plan.blob_bytes)};
  return bundle;
}

std::string Bundle::text(const std::string& file) const {
  const MappedFile& content = files->at(file);
  return std::string(reinterpret_cast<const char*>(content.data()), content.bytes());
}

}  // namespace pocketfarm
