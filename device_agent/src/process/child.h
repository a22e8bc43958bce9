// A program of somebody else as a child process: what it prints, how it ends, what it used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "system/status.h"

namespace pocketfarm {

struct ChildEnd {
  int pid = 0;
  int64_t start_ns = 0, end_ns = 0;  // before the fork, and when its end was noticed
  int status = 0;                    // of its exit; of no meaning where a signal ended it
  int signal = 0;
  int64_t user_ns = 0, system_ns = 0;  // with the children that it waited for
  int64_t peak_rss_bytes = 0;          // of the largest process among these
};

// Called for each line without its end, from a thread of its own, while the child runs; `whole`: it had an end.
using OnLine = std::function<void(const char* stream, std::string_view text, bool whole)>;
// Called from the same thread a tenth of a second after the start, and each time after twice as long: a long run is not
// disturbed by looks at its process.
using OnLook = std::function<void(int pid)>;

// Runs a program in `folder`, in a process group of its own, with nothing to read and `NAME=VALUE`s beside ours. Ends
// with it: what it leaves running is killed, and so is all of it when this process ends. A name without a `/` is looked
// for in the folder, then in PATH. Error code `program_failed` where it cannot be started.
Result<ChildEnd> run_child(const std::vector<std::string>& argv, const std::string& folder,
                           const std::vector<std::string>& variables, const OnLine& on_line, const OnLook& on_look);

// The child that runs now; 0: none.
int child_pid();
// Kills the group of the child that runs now; for a thread that is about to end the process.
void kill_child();

}  // namespace pocketfarm
