// Temperature of the phone's skin.
#pragma once

#include "node.h"

namespace pocketfarm {

class Skin {
 public:
  // The first readable thermal zone whose type names the skin.
  static Skin open(const std::string& sysroot);
  void read(JsonObject& fields) const;

 private:
  Node temp_;
};

}  // namespace pocketfarm
