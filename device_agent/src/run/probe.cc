#include "commands.h"

#include "backends/backend.h"

namespace pocketfarm {

int probe_devices(const Environment& environment, Journal& journal) {
  int found = 0;
  for (const ApiEntry& entry : apis()) {
    if (!environment.offers(entry.api)) continue;
    auto devices = entry.probe(environment);
    if (!devices) {
      journal.write("warning", JsonObject()
                                   .set("code", word(devices.error().code))
                                   .set("message", std::string(word(entry.api)) + ": " + devices.error().message));
      continue;
    }
    for (const ApiFacts& facts : *devices) journal.write("probe", JsonObject().set("facts", facts.json())), ++found;
  }
  return found;
}

}  // namespace pocketfarm
