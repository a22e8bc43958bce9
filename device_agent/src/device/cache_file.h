// Files of a driver's own binaries. A driver may crash on a damaged one, so each carries its SHA-256.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "system/status.h"

namespace pocketfarm {

// `folder`/`prefix`-<hash of the key's parts and of the system's build>.bin
std::string cache_path(const std::string& folder, const char* prefix, std::initializer_list<std::string_view> key);
// Content of a cache file, empty where there is none; an error where it is damaged.
Result<std::string> load_cached(const std::string& path);
Status save_cached(const std::string& path, std::string_view content);

}  // namespace pocketfarm
