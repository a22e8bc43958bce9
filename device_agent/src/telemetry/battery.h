// The battery's fuel gauge.
#pragma once

#include "node.h"

namespace pocketfarm {

struct Battery {
  Node current, voltage, temp, charge, status;

  // What can be read below `sysroot`/sys/class/power_supply.
  static Battery open(const std::string& sysroot);
  // Fields of a `power` event; the current first, at once followed by its voltage.
  void read(JsonObject& fields) const;
};

}  // namespace pocketfarm
