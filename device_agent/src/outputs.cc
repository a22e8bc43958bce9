#include "outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sha256.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxInputBytes = size_t{2} << 30;

Error missing_input(const std::string& name) {
  return {Code::usage, "input `" + name + "` is missing: give --input " + name + "=FILE"};
}

bool all_finite(const std::vector<std::byte>& data, const std::string& dtype) {
  if (dtype == "f32")
    for (size_t at = 0; at + 4 <= data.size(); at += 4) {
      float value;
      std::memcpy(&value, &data[at], 4);
      if (!std::isfinite(value)) return false;
    }
  if (dtype == "f16")
    for (size_t at = 0; at + 2 <= data.size(); at += 2) {
      uint16_t bits;
      std::memcpy(&bits, &data[at], 2);
      if ((bits & 0x7c00) == 0x7c00) return false;
    }
  return true;
}

JsonObject output_fields(const Port& port, const std::string& file, const std::vector<std::byte>& data) {
  return JsonObject()
      .set("name", port.name)
      .set("file", file)
      .set("bytes", data.size())
      .set("sha256", sha256_hex(data.data(), data.size()))
      .set("finite", all_finite(data, port.dtype));
}

}  // namespace

Result<Inputs> Inputs::open(const Plan& plan, const Named& files) {
  Inputs inputs;
  for (const auto& [name, path] : files)
    if (std::none_of(plan.inputs.begin(), plan.inputs.end(), [&name = name](const Port& p) { return p.name == name; }))
      return Error{Code::usage, "the plan has no input `" + name + "`"};
  for (const Port& port : plan.inputs) {
    const auto given = std::find_if(files.begin(), files.end(), [&](const auto& item) { return item.first == port.name; });
    if (given == files.end()) return missing_input(port.name);
    auto content = read_file(given->second, kMaxInputBytes);
    if (!content) return content.error();
    if (content->size() != port.bytes)
      return Error{Code::usage, given->second + ": " + std::to_string(content->size()) + " bytes; input `" + port.name +
                                    "` takes " + std::to_string(port.bytes) + " (" + port.dtype + ", row-major)"};
    inputs.items_.push_back({&plan.buffers[port.buffer], std::move(*content)});
  }
  return inputs;
}

Status Inputs::write(Backend& backend) const {
  for (const Item& item : items_)
    if (auto error = backend.write(*item.buffer, item.content.data(), item.content.size())) return error;
  return kOk;
}

uint64_t Inputs::bytes() const {
  uint64_t total = 0;
  for (const Item& item : items_) total += item.content.size();
  return total;
}

Status write_outputs(const Plan& plan, Backend& backend, const std::string& folder, Journal& journal, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  uint64_t total = 0;
  std::vector<std::vector<std::byte>> contents;
  for (const Port& port : plan.outputs) {
    contents.emplace_back(port.bytes);
    if (auto error = backend.read(plan.buffers[port.buffer], contents.back().data(), port.bytes)) return error;
    total += port.bytes;
  }
  log.record("readback", start_ns, std::to_string(contents.size()) + " outputs", false, total);
  for (size_t i = 0; i < contents.size(); ++i) {
    const std::string file = folder.empty() ? "" : folder + "/" + std::to_string(i) + ".bin";
    if (!file.empty())
      if (auto error = write_file(file, contents[i].data(), contents[i].size())) return error;
    journal.write("output", output_fields(plan.outputs[i], file, contents[i]));
  }
  return kOk;
}

}  // namespace pocketfarm
