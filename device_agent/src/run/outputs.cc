#include "outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "system/sha256.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxInputBytes = size_t{2} << 30;

Error missing_input(const std::string& name) {
  return {Code::usage, "input `" + name + "` is missing: give --input " + name + "=FILE"};
}

bool all_finite(const std::vector<std::byte>& data, Type type) {
  if (type == Type::f32)
    for (size_t at = 0; at + 4 <= data.size(); at += 4) {
      float value;
      std::memcpy(&value, &data[at], 4);
      if (!std::isfinite(value)) return false;
    }
  if (type == Type::f16)
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
      .set("finite", all_finite(data, port.type));
}

Error wrong_size(const std::string& file, uint64_t bytes, const Port& port, bool stream) {
  return {Code::usage, file + ": " + std::to_string(bytes) + " bytes; input `" + port.name + "` takes " +
                           (stream ? "frames of " : "") + std::to_string(port.bytes) + " (" + word(port.type) +
                           ", row-major)"};
}

}  // namespace

Result<Inputs> Inputs::open(const Plan& plan, const Named& files, bool stream) {
  Inputs inputs;
  for (const auto& [name, path] : files)
    if (std::none_of(plan.inputs.begin(), plan.inputs.end(), [&name = name](const Port& p) { return p.name == name; }))
      return Error{Code::usage, "the plan has no input `" + name + "`"};
  for (const Port& port : plan.inputs) {
    const auto given = std::find_if(files.begin(), files.end(), [&](const auto& item) { return item.first == port.name; });
    if (given == files.end()) return missing_input(port.name);
    auto content = read_file(given->second, kMaxInputBytes);
    if (!content) return content.error();
    const uint64_t frames = content->size() / port.bytes;
    if (frames == 0 || content->size() % port.bytes != 0 || (frames > 1 && !stream))
      return wrong_size(given->second, content->size(), port, stream);
    if (!inputs.items_.empty() && frames != static_cast<uint64_t>(inputs.frames_))
      return Error{Code::usage, given->second + ": " + std::to_string(frames) + " frames, and the inputs before have " +
                                    std::to_string(inputs.frames_)};
    inputs.frames_ = static_cast<int64_t>(frames);
    inputs.items_.push_back({&plan.buffers[port.buffer], port.bytes, std::move(*content)});
  }
  return inputs;
}

Status Inputs::write(Backend& backend) const {
  for (const Item& item : items_)
    if (auto error = backend.write(*item.buffer, item.content.data(), item.bytes)) return error;
  return kOk;
}

uint64_t Inputs::bytes() const {
  uint64_t total = 0;
  for (const Item& item : items_) total += item.content.size();
  return total;
}

std::vector<Frames::Item> Inputs::items() {
  std::vector<Frames::Item> out;
  for (Item& item : items_) out.push_back({item.buffer, reinterpret_cast<std::byte*>(item.content.data()), item.bytes});
  return out;
}

Outputs::Outputs(const Plan& plan, int64_t frames) : plan_(plan) {
  for (const Port& port : plan.outputs) contents_.emplace_back(port.bytes * static_cast<uint64_t>(frames));
}

std::vector<Frames::Item> Outputs::items() {
  std::vector<Frames::Item> out;
  for (size_t i = 0; i < contents_.size(); ++i) {
    const Port& port = plan_.outputs[i];
    out.push_back({&plan_.buffers[port.buffer], contents_[i].data(), port.bytes});
  }
  return out;
}

Status Outputs::read(Backend& backend, const Frames& frames, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  uint64_t total = 0;
  for (size_t i = 0; i < contents_.size() && !frames.moved; ++i) {
    const Port& port = plan_.outputs[i];
    if (auto error = backend.read(plan_.buffers[port.buffer], contents_[i].data(), port.bytes)) return error;
    total += port.bytes;
  }
  log.record("readback", start_ns, std::to_string(contents_.size()) + " outputs", false, total);
  return kOk;
}

Status Outputs::write(const std::string& folder, Journal& journal) const {
  for (size_t i = 0; i < contents_.size(); ++i) {
    const std::string file = folder.empty() ? "" : folder + "/" + std::to_string(i) + ".bin";
    if (!file.empty())
      if (auto error = write_file(file, contents_[i].data(), contents_[i].size())) return error;
    journal.write("output", output_fields(plan_.outputs[i], file, contents_[i]));
  }
  return kOk;
}

}  // namespace pocketfarm
