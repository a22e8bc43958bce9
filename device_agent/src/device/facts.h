// What one compute API of a device offers: ApiFacts of orchestrator/model/device.py, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/json_object.h"

namespace pocketfarm {

enum class Api { opencl, vulkan, cpu };
enum class Precision { fp32, relaxed, imprecise, fp16, fp16_arithmetic, int8 };

const char* word(Api api);
const char* word(Precision precision);

struct ApiFacts {
  Api api = Api::cpu;
  std::string version;
  std::string device_name;
  std::string vendor;
  std::string driver;
  std::string library;
  std::vector<Precision> precisions{Precision::fp32};
  uint64_t global_bytes = 0;
  uint64_t max_buffer_bytes = 0;  // largest single allocation; 0: unknown
  uint64_t local_bytes = 0;
  uint64_t max_work_group = 1;
  std::vector<uint64_t> max_work_item_sizes;
  uint64_t compute_units = 1;
  uint64_t clock_mhz = 0;
  uint64_t offset_alignment = 256;
  uint64_t subgroup_size = 0;
  std::string dot_product;  // of four whole numbers of 8 bits in a word: "khr", "ptx" (NVIDIA), "vnni", "sdot", or none
  std::vector<std::string> matrix_units;  // "16x16x16", rows x columns x depth; halves, added in single
  bool int64 = true;  // kernels may have whole numbers of 64 bits
  bool unified_memory = false;
  uint64_t max_image_width = 0;  // of 2-D images, in texels; 0: the device has none
  uint64_t max_image_height = 0;

  bool has(Precision precision) const;
  JsonObject json() const;
};

}  // namespace pocketfarm
