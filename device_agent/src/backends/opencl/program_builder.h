// OpenCL programs from source or from the cache of binaries.
#pragma once

#include <string>

#include "journal/setup_log.h"
#include "device.h"
#include "library.h"

namespace pocketfarm::opencl {

struct BuiltProgram {
  Owned<cl_program> program;
  bool cached = false;
};

// Builds for one device. Binaries are keyed by driver, device, build fingerprint, source and options.
class ProgramBuilder {
 public:
  ProgramBuilder(const Library& library, const Device& device, cl_context context, std::string cache_dir,
                 SetupLog& log)
      : library_(library), device_(device), context_(context), cache_dir_(std::move(cache_dir)), log_(log) {}

  // A damaged binary, and one that the driver refuses, are built anew with a warning. `build_failed` carries the end of
  // the compiler's log.
  Result<BuiltProgram> build(const std::string& source, const std::string& options, const std::string& name);
  // Keeps the binary. Call after the kernels were created: some drivers compile only then. Failure is no error
  // of the run; it is told as text.
  std::string save(cl_program program, const std::string& source, const std::string& options);

 private:
  std::string cache_file(const std::string& source, const std::string& options) const;
  Owned<cl_program> load(const std::string& file, const std::string& options);
  Owned<cl_program> from_binary(const std::string& binary, const std::string& options);
  // The program compiled again from its own assembly, with instructions of compute capability 9.0 no longer comments.
  Result<BuiltProgram> unmarked(cl_program program, const std::string& options, const std::string& name);
  std::string binary_of(cl_program program);  // empty where the driver gives none
  Error build_error(cl_program program, const std::string& name, cl_int code);

  const Library& library_;
  const Device& device_;
  cl_context context_;
  std::string cache_dir_;
  SetupLog& log_;
};

}  // namespace pocketfarm::opencl
