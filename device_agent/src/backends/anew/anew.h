// A backend that is made, and destroyed, with each inference: what study C compares "create once, use many times" with.
#pragma once

#include <functional>

#include "backends/backend.h"

namespace pocketfarm {

using Opener = std::function<Result<std::unique_ptr<Backend>>(SetupLog& log)>;

// `first`: what `open` made for the first time.
std::unique_ptr<Backend> make_anew(std::unique_ptr<Backend> first, Opener open);

}  // namespace pocketfarm
