#include "cache_file.h"

#include "environment.h"
#include "system/files.h"
#include "system/sha256.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxBytes = 256u << 20;
constexpr size_t kDigestBytes = 64;

}  // namespace

std::string cache_path(const std::string& folder, const char* prefix, std::initializer_list<std::string_view> key) {
  Sha256 hash;
  const auto add = [&](std::string_view part) {
    hash.update(part.data(), part.size());
    hash.update("", 1);
  };
  add(kAgentVersion);
  add(build_fingerprint());
  for (std::string_view part : key) add(part);
  return folder + "/" + prefix + "-" + hash.hex().substr(0, 32) + ".bin";
}

Result<std::string> load_cached(const std::string& path) {
  auto file = read_file(path, kMaxBytes);
  if (!file) return std::string();
  std::string content = file->size() > kDigestBytes ? file->substr(kDigestBytes) : "";
  if (content.empty() || sha256_hex(content) != file->substr(0, kDigestBytes))
    return Error{Code::io, path + " is damaged (its content does not match its SHA-256); built anew"};
  return content;
}

Status save_cached(const std::string& path, std::string_view content) {
  const std::string file = sha256_hex(content) + std::string(content);
  return write_file(path, file.data(), file.size());
}

}  // namespace pocketfarm
