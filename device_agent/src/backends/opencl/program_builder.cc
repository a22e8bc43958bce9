#include "program_builder.h"

#include "device/cache_file.h"

namespace pocketfarm::opencl {
namespace {

constexpr size_t kMaxLogBytes = 2000;

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
  return BuiltProgram{std::move(program), false};
}

std::string ProgramBuilder::save(cl_program program, const std::string& source, const std::string& options) {
  if (cache_dir_.empty()) return "";
  size_t bytes = 0;
  library_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  if (bytes == 0) return "the driver gives no program binary";
  std::string binary(bytes, '\0');
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  if (const cl_int code = library_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr))
    return cl_error("clGetProgramInfo", code).message;
  const Status failed = save_cached(cache_file(source, options), binary);
  return failed ? failed->message : "";
}

}  // namespace pocketfarm::opencl
