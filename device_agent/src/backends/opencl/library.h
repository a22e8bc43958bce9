// The OpenCL library, loaded at run time, and owners of its objects.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <utility>

#include "system/status.h"

namespace pocketfarm::opencl {

#define POCKETFARM_OPENCL_FUNCTIONS(F)                                                                        \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo)                               \
  F(clCreateContext) F(clReleaseContext) F(clCreateCommandQueue) F(clReleaseCommandQueue)                     \
  F(clCreateProgramWithSource) F(clCreateProgramWithBinary) F(clBuildProgram) F(clGetProgramInfo)             \
  F(clGetProgramBuildInfo) F(clReleaseProgram) F(clCreateKernel) F(clReleaseKernel) F(clGetKernelInfo)        \
  F(clGetKernelWorkGroupInfo) F(clSetKernelArg) F(clCreateBuffer) F(clCreateSubBuffer) F(clReleaseMemObject)  \
  F(clEnqueueWriteBuffer) F(clEnqueueReadBuffer) F(clEnqueueCopyBuffer) F(clEnqueueNDRangeKernel) F(clFlush) \
  F(clEnqueueMapBuffer) F(clEnqueueUnmapMemObject)                                                            \
  F(clFinish) F(clGetEventProfilingInfo) F(clReleaseEvent)

// Absent from OpenCL 1.1.
#define POCKETFARM_OPENCL_12_FUNCTIONS(F) F(clGetExtensionFunctionAddressForPlatform)

// Function pointers under the names of the API; never unloaded, since drivers keep threads.
struct Library {
#define POCKETFARM_DECLARE(name) decltype(&::name) name = nullptr;
  POCKETFARM_OPENCL_FUNCTIONS(POCKETFARM_DECLARE)
  POCKETFARM_OPENCL_12_FUNCTIONS(POCKETFARM_DECLARE)
#undef POCKETFARM_DECLARE
  std::string path;

  // The first library of the search order that has a platform; `no_device` says where it looked.
  static Result<const Library*> load();
};

// Owns one OpenCL object.
template <typename T>
class Owned {
 public:
  using Release = cl_int (*)(T);
  Owned() = default;
  Owned(T object, Release release) : object_(object), release_(release) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) release_(object_);
  }
  T get() const { return object_; }
  const T* address() const { return &object_; }

 private:
  T object_ = nullptr;
  Release release_ = nullptr;
};

// An error of an OpenCL call, by its code.
Error cl_error(const std::string& call, cl_int code);

}  // namespace pocketfarm::opencl
