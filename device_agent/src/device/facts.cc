#include "facts.h"

#include <algorithm>

namespace pocketfarm {

const char* word(Api api) { return api == Api::opencl ? "opencl" : api == Api::vulkan ? "vulkan" : "cpu"; }

const char* word(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::relaxed: return "relaxed";
    case Precision::imprecise: return "imprecise";
    case Precision::fp16: return "fp16";
    case Precision::fp16_arithmetic: return "fp16_arithmetic";
    case Precision::int8: return "int8";
  }
  return "";
}

bool ApiFacts::has(Precision precision) const {
  return std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
}

JsonObject ApiFacts::json() const {
  std::vector<std::string> precision_words;
  for (Precision precision : precisions) precision_words.emplace_back(word(precision));
  return JsonObject()
      .set("api", word(api))
      .set("version", version)
      .set("device_name", device_name)
      .set("vendor", vendor)
      .set("driver", driver)
      .set("library", library)
      .set("precisions", precision_words)
      .set("global_bytes", global_bytes)
      .set("max_buffer_bytes", max_buffer_bytes)
      .set("local_bytes", local_bytes)
      .set("max_work_group", std::max<uint64_t>(max_work_group, 1))
      .set("max_work_item_sizes", std::vector<int64_t>(max_work_item_sizes.begin(), max_work_item_sizes.end()))
      .set("compute_units", compute_units)
      .set("clock_mhz", clock_mhz)
      .set("offset_alignment", std::max<uint64_t>(offset_alignment, 1))
      .set("subgroup_size", subgroup_size)
      .set("dot_product", dot_product)
      .set("matrix_units", matrix_units)
      .set("int64", int64)
      .set("unified_memory", unified_memory)
      .set("max_image_width", max_image_width)
      .set("max_image_height", max_image_height);
}

}  // namespace pocketfarm
