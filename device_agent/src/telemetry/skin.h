// Temperature of the phone's skin.
#pragma once

#include "node.h"

namespace pocketfarm {

class Skin {
 public:
  // The first readable thermal zone whose type names the skin.
  static Skin open(const std::string& sysroot);
  void read(JsonObject& fields) const;
  // Tenths of a degree Celsius.
  std::optional<int64_t> tenths() const;

 private:
  Node temp_;
};

}  // namespace pocketfarm
