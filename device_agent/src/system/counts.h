// What the system counts of this process, with the children that it waited for.
#pragma once

#include <cstdint>
#include <vector>

namespace pocketfarm {

struct Count {
  const char* name;
  int64_t value;
};

std::vector<Count> process_counts();  // since it began: only differences say something

}  // namespace pocketfarm
