// Parsing: plan.json -> Plan.
#include "plan.h"

#include <limits>
#include <unordered_map>

#include "json_reader.h"
#include "plan_check.h"
#include "plan_hash.h"

namespace pocketfarm {
namespace {

constexpr int kMaxRepeatDepth = 8;

// Indices of named parts; refuses a name that comes twice.
class Names {
 public:
  explicit Names(const char* what) : what_(what) {}

  void add(const Reader& id) {
    if (!index_.emplace(id.text(), index_.size()).second) id.fail(std::string("a second ") + what_ + " of this id");
  }
  size_t find(const Reader& id) const {
    const auto found = index_.find(id.text());
    if (found == index_.end()) id.fail(std::string("no ") + what_ + " `" + id.text() + "` in this plan");
    return found->second;
  }

 private:
  const char* what_;
  std::unordered_map<std::string, size_t> index_;
};

Extent extent(const Reader& json, uint32_t max) {
  const auto items = json.items(3);
  if (items.size() != 3) json.fail("expected three numbers: x, y, z");
  Extent out{};
  for (size_t i = 0; i < 3; ++i) out[i] = static_cast<uint32_t>(items[i].integer(1, max));
  return out;
}

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
  std::vector<Step> steps(const Reader& json, int depth);
  Step step(const Reader& json, int depth);
  void dispatch(const Reader& json, Step& step);
  void copy(const Reader& json, Step& step);
  Argument argument(const Reader& json) const;
  Port port(const Reader& json) const;
  std::string listed_file(const Reader& json) const;

  Plan plan_;
  Names programs_{"program"}, pools_{"pool"}, buffers_{"buffer"};
  size_t top_ = 0;
};

void Parser::header(const Reader& root) {
  root.only({"schema_version", "name", "api", "precision", "options", "blob_bytes", "files", "requires", "programs",
             "pools", "buffers", "steps", "inputs", "outputs"});
  root.at("schema_version").integer(1, 1);
  plan_.name = root.at("name").text();
  const std::string api = root.at("api").word({"opencl", "vulkan", "cpu"});
  plan_.api = api == "opencl" ? Api::opencl : api == "vulkan" ? Api::vulkan : Api::cpu;
  const std::string precision = root.at("precision").word({"fp32", "relaxed", "fp16", "fp16_arithmetic"});
  for (Precision known : {Precision::fp32, Precision::relaxed, Precision::fp16, Precision::fp16_arithmetic})
    if (precision == word(known)) plan_.precision = known;
  plan_.blob_bytes = root.at("blob_bytes").bytes();
  for (const auto& [name, hash] : root.at("files").members()) plan_.files[bundle_path(hash, name)] = hash.text();
  if (plan_.blob_bytes > 0 && plan_.files.count("blob.bin") == 0)
    root.at("files").fail("`blob.bin` is missing, and blob_bytes is not 0");
}

Requires requirements(const Reader& json) {
  json.only({"total_bytes", "max_buffer_bytes", "work_group", "local_bytes", "fp16", "image_width", "image_height"});
  Requires needs;
  needs.total_bytes = json.at("total_bytes").bytes();
  needs.max_buffer_bytes = json.at("max_buffer_bytes").bytes();
  if (json.has("work_group")) needs.work_group = json.at("work_group").bytes();
  if (json.has("local_bytes")) needs.local_bytes = json.at("local_bytes").bytes();
  if (json.has("fp16")) needs.fp16 = json.at("fp16").flag();
  if (json.has("image_width")) needs.image_width = json.at("image_width").bytes();
  if (json.has("image_height")) needs.image_height = json.at("image_height").bytes();
  return needs;
}

std::optional<Image> image(const Reader& json) {
  if (!json.has("image")) return std::nullopt;
  const Reader at = json.at("image");
  at.only({"width", "height", "format"});
  constexpr int64_t kMaxTexels = 1 << 20;
  return Image{static_cast<uint32_t>(at.at("width").integer(1, kMaxTexels)),
               static_cast<uint32_t>(at.at("height").integer(1, kMaxTexels)),
               at.at("format").word({"rgba32f", "rgba16f"}) == "rgba16f"};
}

Parameter parameter(const Reader& json) {
  json.only({"name", "kind", "access", "texel"});
  Parameter out;
  out.name = json.at("name").text();
  const std::string kind = json.at("kind").word({"buffer", "image", "i32", "f32"});
  out.kind = kind == "i32"   ? Parameter::Kind::i32
             : kind == "f32" ? Parameter::Kind::f32
                             : Parameter::Kind::buffer;
  out.image = kind == "image";
  const std::string access = json.has("access") ? json.at("access").word({"read", "write", "readwrite"}) : "read";
  out.reads = access != "write";
  out.writes = access != "read";
  const std::string texel = json.has("texel") ? json.at("texel").word({"", "r32f", "rgba32f", "rgba16f"}) : "";
  if (!texel.empty() && (out.kind != Parameter::Kind::buffer || out.writes))
    json.fail("a texel is for a buffer that is only read");
  out.texel = texel.empty()       ? Parameter::Texel::none
              : texel == "r32f"    ? Parameter::Texel::r32f
              : texel == "rgba32f" ? Parameter::Texel::rgba32f
                                   : Parameter::Texel::rgba16f;
  return out;
}

std::string Parser::listed_file(const Reader& json) const {
  if (plan_.files.count(json.text()) == 0) json.fail("`" + json.text() + "` is not listed in `files`");
  return json.text();
}

SpirvModule spirv(const Reader& json, std::string file) {
  json.only({"file", "constants"});
  SpirvModule out{std::move(file), {}};
  if (!json.has("constants")) return out;
  for (const auto& [key, value] : json.at("constants").members()) {
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoul(key) < 3) value.fail("the id of a specialisation constant is a number above 2");
    out.constants[static_cast<uint32_t>(std::stoul(key))] =
        static_cast<uint32_t>(value.integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<uint32_t>::max()));
  }
  return out;
}

void Parser::program(const Reader& json) {
  json.only({"id", "kernel", "parameters", "work_group", "local_bytes", "opencl", "vulkan"});
  programs_.add(json.at("id"));
  Program out;
  out.id = json.at("id").text();
  out.kernel = json.at("kernel").text();
  for (const Reader& item : json.at("parameters").items(128)) out.parameters.push_back(parameter(item));
  if (json.has("work_group")) out.work_group = extent(json.at("work_group"), 65536);
  if (json.has("local_bytes")) out.local_bytes = json.at("local_bytes").bytes();
  if (json.has("opencl")) {
    json.at("opencl").only({"file", "options"});
    out.opencl = OpenClSource{listed_file(json.at("opencl").at("file")), json.at("opencl").at("options").text()};
  }
  if (json.has("vulkan")) out.vulkan = spirv(json.at("vulkan"), listed_file(json.at("vulkan").at("file")));
  if (plan_.api == Api::opencl && !out.opencl) json.fail("an OpenCL plan needs `opencl` here");
  if (plan_.api == Api::vulkan && !out.vulkan) json.fail("a Vulkan plan needs `vulkan` here");
  plan_.programs.push_back(std::move(out));
}

void Parser::pool(const Reader& json) {
  json.only({"id", "bytes", "memory", "image"});
  pools_.add(json.at("id"));
  const bool host_visible = json.has("memory") && json.at("memory").word({"device", "host_visible"}) == "host_visible";
  plan_.pools.push_back({json.at("id").text(), json.at("bytes").bytes(1), host_visible, image(json)});
  check_pool(json, plan_.pools.back(), plan_.api);
}

void Parser::buffer(const Reader& json) {
  json.only({"id", "pool", "offset", "bytes", "role", "tensor", "blob_offset", "image"});
  buffers_.add(json.at("id"));
  Buffer out;
  out.id = json.at("id").text();
  out.pool = pools_.find(json.at("pool"));
  out.offset = json.at("offset").bytes();
  out.bytes = json.at("bytes").bytes(1);
  json.at("role").word({"input", "output", "weight", "activation", "scratch"});
  if (json.has("blob_offset")) out.blob_offset = json.at("blob_offset").bytes();
  check_range(json, "pool `" + plan_.pools[out.pool].id + "`", out.offset, out.bytes, plan_.pools[out.pool].bytes);
  if (out.blob_offset) check_range(json, "blob.bin", *out.blob_offset, out.bytes, plan_.blob_bytes);
  out.image = image(json);
  check_image(json, plan_.pools[out.pool], out);
  plan_.buffers.push_back(std::move(out));
}

Argument Parser::argument(const Reader& json) const {
  json.only({"buffer", "i32", "f32"});
  Argument out;
  if (json.has("buffer")) {
    out.buffer = buffers_.find(json.at("buffer"));
  } else if (json.has("i32")) {
    out.kind = Parameter::Kind::i32;
    out.i32 = static_cast<int32_t>(json.at("i32").integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  } else {
    out.kind = Parameter::Kind::f32;
    const double value = json.at("f32").number();
    if (std::abs(value) > double{std::numeric_limits<float>::max()}) json.at("f32").fail("does not fit a 32-bit float");
    out.f32 = static_cast<float>(value);
  }
  return out;
}

void Parser::dispatch(const Reader& json, Step& step) {
  json.only({"kind", "program", "layer", "work_items", "arguments", "flops", "bytes"});
  step.program = programs_.find(json.at("program"));
  step.work_items = extent(json.at("work_items"), std::numeric_limits<int32_t>::max());
  for (const Reader& item : json.at("arguments").items(128)) step.arguments.push_back(argument(item));
  check_arguments(json.at("arguments"), plan_, plan_.programs[step.program], step.arguments);
}

void Parser::copy(const Reader& json, Step& step) {
  json.only({"kind", "layer", "source", "target", "source_offset", "target_offset", "bytes"});
  step.source = buffers_.find(json.at("source"));
  step.target = buffers_.find(json.at("target"));
  if (json.has("source_offset")) step.source_offset = json.at("source_offset").bytes();
  if (json.has("target_offset")) step.target_offset = json.at("target_offset").bytes();
  step.bytes = json.at("bytes").bytes(1);
  check_copy(json, plan_, step);
}

Step Parser::step(const Reader& json, int depth) {
  Step out;
  const std::string kind = json.at("kind").word({"dispatch", "copy", "swap_out", "swap_in", "repeat"});
  out.layer = json.at("layer").text();
  out.index = top_;
  if (kind == "dispatch") {
    dispatch(json, out);
  } else if (kind == "copy") {
    out.kind = Step::Kind::copy;
    copy(json, out);
  } else if (kind == "repeat") {
    out.kind = Step::Kind::repeat;
    json.only({"kind", "layer", "count", "steps"});
    out.count = json.at("count").bytes(1);
    out.steps = steps(json.at("steps"), depth + 1);
    return out;
  } else {
    out.kind = kind == "swap_out" ? Step::Kind::swap_out : Step::Kind::swap_in;
    json.only({"kind", "layer", "buffer", "host"});
    out.source = buffers_.find(json.at("buffer"));
    out.target = json.has("host") ? buffers_.find(json.at("host")) : out.source;
    for (const auto index : {out.source, out.target}) check_no_image(json, plan_.buffers[index]);
    out.bytes = plan_.buffers[out.source].bytes;
    if (plan_.buffers[out.target].bytes != out.bytes)
      json.fail("buffers `" + plan_.buffers[out.source].id + "` and `" + plan_.buffers[out.target].id +
                "` differ in size, so one has no place in the other's host memory");
  }
  out.leaf = plan_.leaves++;
  return out;
}

std::vector<Step> Parser::steps(const Reader& json, int depth) {
  if (depth > kMaxRepeatDepth) json.fail("`repeat` is nested deeper than " + std::to_string(kMaxRepeatDepth), Code::limit);
  std::vector<Step> out;
  for (const Reader& item : json.items()) {
    if (depth == 0) top_ = out.size();
    out.push_back(step(item, depth));
  }
  return out;
}

Port Parser::port(const Reader& json) const {
  json.only({"name", "buffer", "shape", "dtype"});
  Port out;
  out.name = json.at("name").text();
  out.buffer = buffers_.find(json.at("buffer"));
  check_no_image(json, plan_.buffers[out.buffer]);
  out.dtype = json.has("dtype") ? json.at("dtype").word({"f32", "f16", "i32", "u8"}) : "f32";
  out.bytes = out.dtype == "u8" ? 1 : out.dtype == "f16" ? 2 : 4;
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
  plan_.steps = steps(root.at("steps"), 0);
  for (const Reader& item : root.at("inputs").items(1024)) plan_.inputs.push_back(port(item));
  for (const Reader& item : root.at("outputs").items(65536)) plan_.outputs.push_back(port(item));
  plan_.executed = check_executed(root.at("steps"), plan_.steps);
  check_swaps(root.at("steps"), plan_);
  return std::move(plan_);
}

}  // namespace

Result<Plan> parse_plan(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
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
