#include "plan_parsing.h"

#include <limits>

namespace pocketfarm {
namespace {

Parameter parameter(const Reader& json) {
  json.only({"name", "kind", "access", "texel"});
  Parameter out;
  out.name = json.at("name").text();
  const std::string kind = json.at("kind").word({"buffer", "i32", "f32"});
  out.kind = kind == "i32"   ? Parameter::Kind::i32
             : kind == "f32" ? Parameter::Kind::f32
                             : Parameter::Kind::buffer;
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

std::string listed_file(const Reader& json, const Plan& plan) {
  if (plan.files.count(json.text()) == 0) json.fail("`" + json.text() + "` is not listed in `files`");
  return json.text();
}

SpirvModule spirv(const Reader& json, std::string file) {
  json.only({"file", "constants"});
  SpirvModule out{std::move(file), {}};
  if (!json.has("constants")) return out;
  for (const auto& [key, value] : json.at("constants").members()) {
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    const auto id = static_cast<uint32_t>(std::strtoul(key.c_str(), nullptr, 10));
    if (!digits || id < 3) value.fail("the id of a specialisation constant is a number above 2");
    out.constants[id] =
        static_cast<uint32_t>(value.integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<uint32_t>::max()));
  }
  return out;
}

}  // namespace

bool parse_side(const Reader& json, Api api) {
  if (!json.has("api") || json.at("api").word({"", "cpu"}).empty()) return false;
  if (api == Api::cpu) json.at("api").fail("the plan's own API is the CPU's: leave this out");
  return true;
}

Extent parse_extent(const Reader& json, uint32_t max) {
  const auto items = json.items(3);
  if (items.size() != 3) json.fail("expected three numbers: x, y, z");
  Extent out{};
  for (size_t i = 0; i < 3; ++i) out[i] = static_cast<uint32_t>(items[i].integer(1, max));
  return out;
}

Program parse_program(const Reader& json, const Plan& plan) {
  json.only({"id", "kernel", "parameters", "work_group", "local_bytes", "opencl", "vulkan", "api"});
  Program out;
  out.id = json.at("id").text();
  out.kernel = json.at("kernel").text();
  for (const Reader& item : json.at("parameters").items(128)) out.parameters.push_back(parameter(item));
  if (json.has("work_group")) out.work_group = parse_extent(json.at("work_group"), 65536);
  if (json.has("local_bytes")) out.local_bytes = json.at("local_bytes").bytes();
  if (json.has("opencl")) {
    json.at("opencl").only({"file", "options"});
    out.opencl = OpenClSource{listed_file(json.at("opencl").at("file"), plan), json.at("opencl").at("options").text()};
  }
  if (json.has("vulkan")) out.vulkan = spirv(json.at("vulkan"), listed_file(json.at("vulkan").at("file"), plan));
  out.beside = parse_side(json, plan.api);
  if (out.beside) return out;
  if (plan.api == Api::opencl && !out.opencl) json.fail("an OpenCL plan needs `opencl` here");
  if (plan.api == Api::vulkan && !out.vulkan) json.fail("a Vulkan plan needs `vulkan` here");
  return out;
}

}  // namespace pocketfarm
