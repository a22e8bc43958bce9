// What the runner needs of a compute API. Factories return a value or an error; nothing throws, nothing exits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/bundle.h"
#include "system/cpu_use.h"
#include "device/environment.h"
#include "device/facts.h"
#include "plan/frames.h"
#include "journal/setup_log.h"
#include "system/status.h"

namespace pocketfarm {

struct BackendRequest {
  const Environment& environment;
  std::string device;     // part of the device's name; empty: the best device of the API
  CpuUse cpu;             // of the CPU backend
  bool fp16 = false;      // the plan needs 16-bit storage
  std::string cache_dir;  // empty: no cache
};

// One device with one plan on it. Contexts, programs and memory are made once and used for every inference.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const ApiFacts& facts() const = 0;
  virtual int threads() const { return 0; }
  // Builds programs, allocates pools, uploads the blob. The bundle outlives the backend.
  virtual Status prepare(const Bundle& bundle, SetupLog& log) = 0;
  virtual Status write(const Buffer& buffer, const void* data, uint64_t bytes) = 0;
  virtual Status read(const Buffer& buffer, void* data, uint64_t bytes) = 0;
  // Where the host itself reads and writes a buffer; null where it cannot.
  virtual void* address(const Buffer&) { return nullptr; }
  // One inference, from submission to completion.
  virtual Status run() = 0;
  // Of a plan that trains: so many passes through a stage's steps, none of which waits for the host; waits for the last.
  virtual Status run_batches(const Stage& stage, int64_t count) = 0;
  // Before the first stream, with the same frames: what it needs is made once.
  virtual Status prepare_stream(const Frames&, SetupLog&) { return kOk; }
  // A stream of `count` inferences, from the first's submission to the last's completion: none waits for the host.
  virtual Status run_stream(int count, const Frames& frames) = 0;
  // Steps [begin, end) with device time stamps: writes each one's time in ns to `step_ns`, which has a place for each.
  virtual Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) = 0;
  // Bytes allocated on the device by this backend; only grows while a plan is loaded, so it is the peak as well.
  virtual uint64_t device_bytes() const = 0;
};

using BackendFactory = Result<std::unique_ptr<Backend>> (*)(const BackendRequest&, SetupLog&);
using BackendProbe = Result<std::vector<ApiFacts>> (*)(const Environment&);

struct ApiEntry {
  Api api;
  BackendFactory open;
  BackendProbe probe;  // every device of the API, the one that `open` chooses by default first
};

// The APIs of this build.
const std::vector<ApiEntry>& apis();

// Chooses among device names, given best first: index, or `no_device` with the names that there are.
Result<size_t> choose_device(const std::vector<std::string>& names, const std::string& wanted, Api api);

}  // namespace pocketfarm
