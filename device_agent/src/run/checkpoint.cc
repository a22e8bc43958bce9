#include "checkpoint.h"

#include <vector>

#include "journal/json_object.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/sha256.h"

namespace pocketfarm {
namespace {

constexpr size_t kHashDigits = 64;

std::vector<const Buffer*> variables(const Plan& plan) {
  std::vector<const Buffer*> out;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.variable) out.push_back(&buffer);
  return out;
}

std::string head(const Plan& plan) {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const Buffer* buffer : variables(plan)) {
    names.push_back(buffer->id);
    sizes.push_back(static_cast<int64_t>(buffer->bytes));
  }
  return JsonObject().set("checkpoint", 1).set("plan", plan.hash).set("variables", names).set("bytes", sizes).text() + "\n";
}

uint64_t total_bytes(const Plan& plan) {
  uint64_t total = head(plan).size() + kHashDigits;
  for (const Buffer* buffer : variables(plan)) total += buffer->bytes;
  return total;
}

}  // namespace

Result<std::string> read_variables(const Plan& plan, Backend& backend) {
  std::string values;
  for (const Buffer* buffer : variables(plan)) {
    const size_t at = values.size();
    values.resize(at + buffer->bytes);
    if (auto error = backend.read(*buffer, &values[at], buffer->bytes)) return *error;
  }
  return values;
}

Status write_variables(std::string_view values, const Plan& plan, Backend& backend) {
  size_t at = 0;
  for (const Buffer* buffer : variables(plan)) {
    if (auto error = backend.write(*buffer, values.data() + at, buffer->bytes)) return error;
    at += buffer->bytes;
  }
  return kOk;
}

Status clear_states(const Plan& plan, Backend& backend) {
  for (const Buffer* buffer : variables(plan))
    if (!buffer->blob_offset)
      if (auto error = backend.write(*buffer, std::vector<std::byte>(buffer->bytes).data(), buffer->bytes)) return error;
  return kOk;
}

Status write_checkpoint(const std::string& file, const Plan& plan, Backend& backend, Journal& journal, const char* of, int64_t count) {
  const int64_t start_ns = boottime_ns();
  const auto values = read_variables(plan, backend);
  if (!values) return values.error();
  std::string content = head(plan) + *values;
  content += sha256_hex(content);
  if (auto error = write_file(file, content.data(), content.size())) return *error;
  journal.write("checkpoint", JsonObject()
                                  .set("file", file)
                                  .set("bytes", content.size())
                                  .set("sha256", sha256_hex(content))
                                  .set(of, count)
                                  .set("start_ns", start_ns)
                                  .set("duration_ns", boottime_ns() - start_ns));
  return kOk;
}

Status read_checkpoint(const std::string& file, const Plan& plan, Backend& backend) {
  const auto content = read_file(file, total_bytes(plan));
  if (!content) return content.error();
  const std::string expected = head(plan);
  if (content->compare(0, expected.size(), expected) != 0)
    return Error{Code::usage, file + ": no checkpoint of plan " + plan.hash + "; resume with the plan that wrote it"};
  if (content->size() != total_bytes(plan) ||
      sha256_hex(std::string_view(*content).substr(0, content->size() - kHashDigits)) != content->substr(content->size() - kHashDigits))
    return Error{Code::usage, file + ": damaged: its SHA-256 is not that of its content; resume from an earlier one"};
  return write_variables(std::string_view(*content).substr(expected.size()), plan, backend);
}

}  // namespace pocketfarm
