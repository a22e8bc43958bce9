// Parsing: plan.json -> Plan.
#include "plan.h"

#include "system/json_reader.h"
#include "plan_parsing.h"

namespace pocketfarm {
namespace {

// A path inside the bundle: relative, without `..`.
std::string bundle_path(const Reader& json, const std::string& path) {
  const bool inside = !path.empty() && path[0] != '/' && ("/" + path + "/").find("/../") == std::string::npos &&
                      path.find('\0') == std::string::npos;
  if (!inside) json.fail("`" + path + "` is not a path inside the bundle");
  return path;
}

class Parser {
 public:
  Plan parse(const Reader& root);

 private:
  void header(const Reader& root);
  void program(const Reader& json);
  void pool(const Reader& json);
  void buffer(const Reader& json);
  Port port(const Reader& json) const;

  Plan plan_;
  Names programs_{"program"}, pools_{"pool"}, buffers_{"buffer"};
};

void Parser::header(const Reader& root) {
  root.only({"schema_version", "name", "api", "precision", "options", "blob_bytes", "files", "requires", "programs",
             "pools", "buffers", "steps", "inputs", "outputs", "stages", "generation"});
  root.at("schema_version").integer(1, 1);
  plan_.name = root.at("name").text();
  const std::string api = root.at("api").word({"opencl", "vulkan", "cpu"});
  plan_.api = api == "opencl" ? Api::opencl : api == "vulkan" ? Api::vulkan : Api::cpu;
  const std::string precision = root.at("precision").word({"fp32", "relaxed", "imprecise", "fp16", "fp16_arithmetic", "int8"});
  for (Precision known : {Precision::fp32, Precision::relaxed, Precision::imprecise, Precision::fp16,
                          Precision::fp16_arithmetic, Precision::int8})
    if (precision == word(known)) plan_.precision = known;
  plan_.blob_bytes = root.at("blob_bytes").bytes();
  for (const auto& [name, hash] : root.at("files").members()) plan_.files[bundle_path(hash, name)] = hash.text();
  if (plan_.blob_bytes > 0 && plan_.files.count("blob.bin") == 0)
    root.at("files").fail("`blob.bin` is missing, and blob_bytes is not 0");
}

Requires requirements(const Reader& json) {
  json.only({"total_bytes", "max_buffer_bytes", "work_group", "local_bytes", "fp16"});
  Requires needs;
  needs.total_bytes = json.at("total_bytes").bytes();
  needs.max_buffer_bytes = json.at("max_buffer_bytes").bytes();
  if (json.has("work_group")) needs.work_group = json.at("work_group").bytes();
  if (json.has("local_bytes")) needs.local_bytes = json.at("local_bytes").bytes();
  if (json.has("fp16")) needs.fp16 = json.at("fp16").flag();
  return needs;
}

// The type under `dtype`; f32 where nothing says it.
Type type_in(const Reader& json) {
  if (!json.has("dtype")) return Type::f32;
  const std::string name = json.at("dtype").word({"f32", "f16", "i32", "i64", "i8", "u8", "bool"});
  return static_cast<Type>(std::find(std::begin(kTypeNames), std::end(kTypeNames), name) - std::begin(kTypeNames));
}

void Parser::program(const Reader& json) {
  plan_.programs.push_back(parse_program(json, plan_));
  programs_.add(json.at("id"));
}

void Parser::pool(const Reader& json) {
  json.only({"id", "bytes", "memory", "api"});
  pools_.add(json.at("id"));
  const bool host_visible = json.has("memory") && json.at("memory").word({"device", "host_visible"}) == "host_visible";
  plan_.pools.push_back({json.at("id").text(), json.at("bytes").bytes(1), host_visible, parse_side(json, plan_.api)});
}

void Parser::buffer(const Reader& json) {
  json.only({"id", "pool", "offset", "bytes", "role", "tensor", "blob_offset"});
  buffers_.add(json.at("id"));
  Buffer out;
  out.id = json.at("id").text();
  out.pool = pools_.find(json.at("pool"));
  out.offset = json.at("offset").bytes();
  out.bytes = json.at("bytes").bytes(1);
  if (json.has("tensor")) out.type = type_in(json.at("tensor"));
  const std::string role = json.at("role").word({"input", "output", "weight", "offloaded", "activation", "scratch", "variable", "data"});
  out.variable = role == "variable";
  out.data = role == "data";
  out.offloaded = role == "offloaded";
  if (json.has("blob_offset")) out.blob_offset = json.at("blob_offset").bytes();
  check_range(json, "pool `" + plan_.pools[out.pool].id + "`", out.offset, out.bytes, plan_.pools[out.pool].bytes);
  if (out.blob_offset) check_range(json, "blob.bin", *out.blob_offset, out.bytes, plan_.blob_bytes);
  plan_.buffers.push_back(std::move(out));
}

Port Parser::port(const Reader& json) const {
  json.only({"name", "buffer", "shape", "dtype"});
  Port out;
  out.name = json.at("name").text();
  out.buffer = buffers_.find(json.at("buffer"));
  out.type = type_in(json);
  out.bytes = size_of(out.type);
  for (const Reader& item : json.at("shape").items(32))
    if (__builtin_mul_overflow(out.bytes, static_cast<uint64_t>(item.integer(1, Reader::kMaxBytes)), &out.bytes))
      json.at("shape").fail("the number of elements overflows", Code::limit);
  check_range(json, "buffer `" + plan_.buffers[out.buffer].id + "`", 0, out.bytes, plan_.buffers[out.buffer].bytes);
  return out;
}

Plan Parser::parse(const Reader& root) {
  header(root);
  plan_.needs = requirements(root.at("requires"));
  for (const Reader& item : root.at("programs").items()) program(item);
  for (const Reader& item : root.at("pools").items()) pool(item);
  for (const Reader& item : root.at("buffers").items()) buffer(item);
  parse_steps(root.at("steps"), programs_, buffers_, plan_);
  for (const Reader& item : root.at("inputs").items(1024)) plan_.inputs.push_back(port(item));
  for (const Reader& item : root.at("outputs").items(65536)) plan_.outputs.push_back(port(item));
  check_swaps(root.at("steps"), plan_);
  if (root.has("stages")) parse_stages(root.at("stages"), buffers_, plan_);
  if (root.has("generation")) parse_generation(root.at("generation"), buffers_, plan_);
  return std::move(plan_);
}

}  // namespace

constexpr int kDeepest = 64;

Result<Plan> parse_plan(const std::string& text) {
  try {
    // What is nested without end would be copied and destroyed by recursion: the stack has one.
    const nlohmann::json none;
    const auto shallow = [&none](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > kDeepest) Reader(none, "$").fail("nested deeper than " + std::to_string(kDeepest) + " levels");
      return true;
    };
    const nlohmann::json json = nlohmann::json::parse(text, shallow);
    Plan plan = Parser().parse(Reader(json, "$"));
    plan.hash = plan_hash(json);
    return plan;
  } catch (const PlanFault& fault) {
    return Error{fault.code, fault.what()};
  } catch (const nlohmann::json::exception& fault) {
    return Error{Code::plan_invalid, std::string("plan.json: not readable JSON: ") + fault.what()};
  }
}

}  // namespace pocketfarm
