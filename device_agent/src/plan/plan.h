// A plan in memory (kernels/plan/model.py): names are resolved to indices, every number is checked.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/facts.h"
#include "system/status.h"

namespace pocketfarm {

using Extent = std::array<uint32_t, 3>;  // x, y, z

// Types of elements; `truth` is a byte that is 0 or 1.
enum class Type : uint8_t { f32, f16, i32, i64, i8, u8, truth };
constexpr const char* kTypeNames[] = {"f32", "f16", "i32", "i64", "i8", "u8", "bool"};
inline const char* word(Type type) { return kTypeNames[static_cast<size_t>(type)]; }
constexpr uint64_t size_of(Type type) { return type == Type::i64 ? 8 : type <= Type::i32 && type != Type::f16 ? 4 : type == Type::f16 ? 2 : 1; }

struct Parameter {
  enum class Kind { buffer, i32, f32 };
  enum class Texel { none, r32f, rgba32f, rgba16f };
  std::string name;
  Kind kind = Kind::buffer;
  Texel texel = Texel::none;  // Vulkan: a storage texel buffer of this format
  bool reads = false;
  bool writes = false;
};

struct OpenClSource {
  std::string file;
  std::string options;
};

struct SpirvModule {
  std::string file;
  std::map<uint32_t, uint32_t> constants;
};

struct Program {
  std::string id;
  std::string kernel;
  std::vector<Parameter> parameters;
  Extent work_group{1, 1, 1};
  uint64_t local_bytes = 0;
  bool beside = false;  // of the CPU backend, in a plan of another API
  std::optional<OpenClSource> opencl;
  std::optional<SpirvModule> vulkan;

  uint64_t work_group_size() const { return uint64_t{work_group[0]} * work_group[1] * work_group[2]; }
};

struct Pool {
  std::string id;
  uint64_t bytes = 0;
  bool host_visible = false;
  bool beside = false;  // of the CPU backend, in a plan of another API
};

struct Buffer {
  std::string id;
  size_t pool = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Type type = Type::f32;
  std::optional<uint64_t> blob_offset;
  bool variable = false;  // written by steps, and kept from one run of them to the next
  bool data = false;      // written once, before the first run
  bool offloaded = false;  // its content waits in host memory until it is swapped in
};

struct Argument {
  Parameter::Kind kind = Parameter::Kind::buffer;
  size_t buffer = 0;
  uint64_t begin = 0, end = 0;  // of the buffer's bytes, those that the step may touch
  int32_t i32 = 0;
  float f32 = 0;
};

struct Step {
  enum class Kind { dispatch, copy, swap_out, swap_in, transfer };
  Kind kind = Kind::dispatch;
  std::string layer;
  size_t index = 0;  // in the plan
  // dispatch
  size_t program = 0;
  Extent work_items{1, 1, 1};
  std::vector<Argument> arguments;
  // copy and transfer (source -> target), swap (source; target: the buffer whose host memory is used)
  size_t source = 0;
  size_t target = 0;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t bytes = 0;
};

// Loops of training: steps [begin, end) run `batches` times an epoch.
struct Stage {
  std::string name;
  size_t begin = 0, end = 0;
  int64_t epochs = 1, batches = 1, samples = 1;
  size_t counter = 0;  // variable: an i32, the batches that are done
  size_t report = 0;   // variable: two f32, sums of loss and wrong answers over the samples of the epoch
  bool classifies = false;
};

// A run of a language model's plan: the steps of stage number `stage` take tokens at a position.
struct Pass {
  size_t stage = 0;
  int64_t tokens = 1;            // of each sequence
  size_t ids = 0, position = 0;  // buffers of whole numbers, which the runner writes; one position for all sequences, or for each
  size_t logits = 0;             // f32, rows of `vocabulary`, of one sequence after the other
  int64_t rows = 1;              // of a sequence: one for each token, or the last token's
  int64_t vocabulary = 1;
};

struct Port {
  std::string name;
  size_t buffer = 0;
  uint64_t bytes = 0;
  Type type = Type::f32;
};

struct Requires {
  uint64_t total_bytes = 0;
  uint64_t max_buffer_bytes = 0;
  uint64_t work_group = 1;
  uint64_t local_bytes = 0;
  bool fp16 = false;
};

struct Plan {
  std::string name;
  std::string hash;  // 16 hex digits, as Plan.plan_hash in Python
  Api api = Api::cpu;
  Precision precision = Precision::fp32;
  uint64_t blob_bytes = 0;
  std::map<std::string, std::string> files;  // file -> SHA-256
  Requires needs;
  std::vector<Program> programs;
  std::vector<Pool> pools;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Stage> stages;  // of a plan that trains or generates: they share out all steps
  std::vector<Pass> passes;   // of a plan that generates, of the most tokens first; the last takes one
  int64_t capacity = 0;       // tokens of a sequence that its variables hold
  int64_t sequences = 1;      // texts that a run takes side by side

  bool trains() const { return !stages.empty() && passes.empty(); }
  // Whether parts of it are the CPU backend's.
  bool mixed() const;
  // Of each buffer, the bytes of host memory in which its content waits while it is away; 0: it is never away.
  std::vector<uint64_t> host_bytes() const;
  bool beside(size_t buffer) const { return pools[buffers[buffer].pool].beside; }
  // Whether a step writes where an input lies, so that the next inference would find something else there.
  bool overwrites_inputs() const;
};

// Reads and checks `plan.json`: types, references, ranges, lifetimes of swapped buffers. `plan_invalid` or `limit`;
// the message gives the JSON path.
Result<Plan> parse_plan(const std::string& text);
// Checks a plan against the device that is to run it: `unsupported` or `limit`; names the limit and by how much.
Status check_limits(const Plan& plan, const ApiFacts& facts);

// What a run may take of the device's memory, less than the device has: as a phone with so much would refuse. 0: no limit.
struct MemoryLimit {
  uint64_t total = 0;
  uint64_t object = 0;  // of one allocation
};

// `limit`: the first allocation that goes beyond, with its largest buffer, and by how much.
Status check_memory_limit(const Plan& plan, const MemoryLimit& limit);

}  // namespace pocketfarm
