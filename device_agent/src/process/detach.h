// A run in a session of its own, which outlives the shell that started it.
#pragma once

#include "journal/journal.h"
#include "system/status.h"

namespace pocketfarm {

class Detached {
 public:
  // Forks. 0 in the child, which has a new session, SIGHUP ignored, standard streams on /dev/null and lines only in
  // the journal; in the parent the child's process id, once the child has called `ready`.
  Result<int> start(Journal& journal);
  // In the child: the journal's first line is on disk.
  void ready();
  // In the parent: returns when the child has ended, or soon. Who started a short run finds its whole journal then.
  void linger();

 private:
  void become_child(Journal& journal);

  Descriptor ready_;  // of the child until it ends
  Descriptor child_;  // of the parent: hung up when the child has ended
};

}  // namespace pocketfarm
