#include "program_builder.h"

#include "device/cache_file.h"

namespace pocketfarm::opencl {
namespace {

constexpr size_t kMaxLogBytes = 2000;
// Stands before instructions of NVIDIA's compute capability 9.0 in a program's assembly, which make comments of them:
// the driver compiles OpenCL C for a target that has not got them.
constexpr char kMark[] = "//sm_90a ", kTarget[] = ".target sm_90";

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string ProgramBuilder::cache_file(const std::string& source, const std::string& options) const {
  return cache_path(cache_dir_, "opencl",
                    {device_.platform_version, device_.driver_version, device_.facts.device_name, options, source});
}

Owned<cl_program> ProgramBuilder::load(const std::string& file, const std::string& options) {
  const auto binary = load_cached(file);
  if (!binary) log_.warn("program_cache", binary.error().message);
  if (!binary || binary->empty()) return {};
  Owned<cl_program> program = from_binary(*binary, options);
  if (program.get() == nullptr) log_.warn("program_cache", file + ": the driver refuses the binary; built anew");
  return program;
}

Owned<cl_program> ProgramBuilder::from_binary(const std::string& binary, const std::string& options) {
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t bytes = binary.size();
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  Owned<cl_program> program(library_.clCreateProgramWithBinary(context_, 1, &device_.id, &bytes, &data, &status, &code),
                            library_.clReleaseProgram);
  if (code != CL_SUCCESS || status != CL_SUCCESS) return {};
  if (library_.clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return {};
  return program;
}

Error ProgramBuilder::build_error(cl_program program, const std::string& name, cl_int code) {
  size_t bytes = 0;
  library_.clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  if (bytes > 0) library_.clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log = log.c_str();
  if (log.size() > kMaxLogBytes) log = "... " + log.substr(log.size() - kMaxLogBytes);
  return {Code::build_failed, name + ": " + cl_error("clBuildProgram", code).message + "\n" + log};
}

Result<BuiltProgram> ProgramBuilder::build(const std::string& source, const std::string& options,
                                           const std::string& name) {
  if (!cache_dir_.empty())
    if (auto program = load(cache_file(source, options), options); program.get() != nullptr)
      return BuiltProgram{std::move(program), true};
  const char* text = source.data();
  const size_t bytes = source.size();
  cl_int code = CL_SUCCESS;
  Owned<cl_program> program(library_.clCreateProgramWithSource(context_, 1, &text, &bytes, &code),
                            library_.clReleaseProgram);
  if (code != CL_SUCCESS) return cl_error(name + ": clCreateProgramWithSource", code);
  code = library_.clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) return build_error(program.get(), name, code);
  if (source.find(kMark) != std::string::npos) return unmarked(program.get(), options, name);
  return BuiltProgram{std::move(program), false};
}

Result<BuiltProgram> ProgramBuilder::unmarked(cl_program program, const std::string& options, const std::string& name) {
  std::string text = binary_of(program).c_str();
  const size_t target = text.find(kTarget);
  if (target == std::string::npos || text.find(kMark) == std::string::npos)
    return Error{Code::build_failed, name + ": the driver's binary is no assembly for sm_90; take another product than "
                                            "`warpgroups`"};
  text.insert(target + sizeof kTarget - 1, "a");
  replace_all(text, kMark, "");
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const size_t bytes = text.size();
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  Owned<cl_program> built(library_.clCreateProgramWithBinary(context_, 1, &device_.id, &bytes, &data, &status, &code),
                          library_.clReleaseProgram);
  if (code != CL_SUCCESS) return cl_error(name + ": clCreateProgramWithBinary", code);
  code = library_.clBuildProgram(built.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) return build_error(built.get(), name, code);
  return BuiltProgram{std::move(built), false};
}

std::string ProgramBuilder::binary_of(cl_program program) {
  size_t bytes = 0;
  library_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  std::string binary(bytes, '\0');
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  if (bytes == 0 || library_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS)
    return "";
  return binary;
}

std::string ProgramBuilder::save(cl_program program, const std::string& source, const std::string& options) {
  if (cache_dir_.empty()) return "";
  const std::string binary = binary_of(program);
  if (binary.empty()) return "the driver gives no program binary";
  const Status failed = save_cached(cache_file(source, options), binary);
  return failed ? failed->message : "";
}

}  // namespace pocketfarm::opencl
