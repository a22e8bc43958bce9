#include "link_error.h"

#include <dlfcn.h>

namespace pocketfarm {

std::string link_error(const std::string& library) {
  const char* said = ::dlerror();
  const std::string words = said == nullptr ? "the linker does not say why it did not open" : said;
  return words.find(library) == std::string::npos ? library + ": " + words : words;
}

}  // namespace pocketfarm
