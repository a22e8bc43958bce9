// Why a library could not be opened.
#pragma once

#include <string>

namespace pocketfarm {

// The dynamic linker's own words after a call of dlopen or dlsym that failed; they name the library.
std::string link_error(const std::string& library);

}  // namespace pocketfarm
