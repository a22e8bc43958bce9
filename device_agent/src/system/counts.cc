#include "counts.h"

#include <sys/resource.h>
#include <time.h>

namespace pocketfarm {

namespace {

int64_t ns(const timeval& time) { return (int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000; }

}  // namespace

std::vector<Count> process_counts() {
  rusage ended{};
  ::getrusage(RUSAGE_CHILDREN, &ended);
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return {
      {"cpu_ns", int64_t{own.tv_sec} * 1'000'000'000 + own.tv_nsec + ns(ended.ru_utime) + ns(ended.ru_stime)},
  };
}

}  // namespace pocketfarm
