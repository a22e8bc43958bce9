#include "environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#ifdef __ANDROID__
#include <sys/system_properties.h>
#endif

namespace pocketfarm {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment Environment::read() {
  return {variable("POCKETFARM_SLOT"), variable("POCKETFARM_SYSROOT"), variable("POCKETFARM_APIS"),
          variable("POCKETFARM_CPU_ISA"), variable("POCKETFARM_KERNEL_LIMITS"),
          variable("POCKETFARM_SWAP_QUEUE"), variable("POCKETFARM_LAUNCH")};
}

uint64_t Environment::kernel_limit(const std::string& kernel) const {
  const std::string key = "," + kernel + "=", all = "," + kernel_limits;
  const size_t at = all.find(key);
  return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at + key.size(), nullptr, 10);
}

bool Environment::offers(Api api) const {
  return apis.empty() || ("," + apis + ",").find(std::string(",") + word(api) + ",") != std::string::npos;
}

const char* abi() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "arm64-v8a";
#elif defined(__arm__)
  return "armeabi-v7a";
#else
  return "unknown";
#endif
}

int all_cores() { return std::max(online_cores(), static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF))); }

int online_cores() { return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))); }

uint64_t memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

std::string build_fingerprint() {
#ifdef __ANDROID__
  char value[PROP_VALUE_MAX] = "";
  if (__system_property_get("ro.build.fingerprint", value) > 0) return value;
#endif
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.release + " " + name.version;
}

}  // namespace pocketfarm
