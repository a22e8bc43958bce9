#include "device.h"

#include <algorithm>

namespace pocketfarm::opencl {
namespace {

template <typename T>
T info(const Library& library, cl_device_id device, cl_device_info what) {
  T value{};
  library.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

std::string trimmed(std::string text) {
  text = text.c_str();  // up to the first NUL
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string text(const Library& library, cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (library.clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string out(bytes, '\0');
  library.clGetDeviceInfo(device, what, bytes, out.data(), nullptr);
  return trimmed(out);
}

std::string text(const Library& library, cl_platform_id platform, cl_platform_info what) {
  size_t bytes = 0;
  if (library.clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string out(bytes, '\0');
  library.clGetPlatformInfo(platform, what, bytes, out.data(), nullptr);
  return trimmed(out);
}

// `OpenCL 3.0 PoCL HSTR: ...` -> `OpenCL 3.0`.
std::string api_version(const std::string& version) {
  const size_t space = version.find(' ', version.find(' ') + 1);
  return version.substr(0, space);
}

// Half storage is part of OpenCL C 1.0 (vload_half, vstore_half); arithmetic in half is an extension.
std::vector<Precision> precisions(const Library& library, cl_device_id device) {
  std::vector<Precision> out{Precision::fp32, Precision::relaxed, Precision::imprecise, Precision::fp16, Precision::int8};
  if (offers(library, device, "cl_khr_fp16")) out.push_back(Precision::fp16_arithmetic);
  return out;
}

// What cl_nv_device_attribute_query tells; zero where a device has not got it.
cl_uint nvidia_info(const Library& library, cl_device_id device, cl_device_info what) {
  return offers(library, device, "cl_nv_device_attribute_query") ? info<cl_uint>(library, device, what) : 0;
}

constexpr cl_device_info kCapabilityMajor = 0x4000, kCapabilityMinor = 0x4001, kWarpSize = 0x4003;

// NVIDIA's driver has no extension for it; its OpenCL C takes the processor's own instruction, from 6.1 on.
std::string dot_product(const Library& library, cl_device_id device) {
  if (offers(library, device, "cl_khr_integer_dot_product")) return "khr";
  const auto capability = [&](cl_device_info what) { return nvidia_info(library, device, what); };
  return 10 * capability(kCapabilityMajor) + capability(kCapabilityMinor) >= 61 ? "ptx" : "";
}

// Products of matrices by a warp: `mma.m16n8k16` and `ldmatrix` of PTX, which devices have from 8.0 on; by four warps:
// `wgmma`, which those of 9.0 alone have.
void add_matrix_units(const Library& library, cl_device_id device, ApiFacts& facts) {
  facts.subgroup_size = nvidia_info(library, device, kWarpSize);
  const cl_uint major = nvidia_info(library, device, kCapabilityMajor);
  if (major >= 8 && facts.subgroup_size == 32) facts.matrix_units = {"16x16x16"};
  if (major == 9 && facts.subgroup_size == 32) facts.matrix_units.push_back("64x256x16");
}

std::vector<uint64_t> work_item_sizes(const Library& library, cl_device_id device) {
  size_t sizes[16] = {};
  const auto dimensions = std::min<cl_uint>(3, info<cl_uint>(library, device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS));
  library.clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, nullptr);
  return {sizes, sizes + dimensions};
}

ApiFacts facts_of(const Library& library, const Device& device) {
  const cl_device_id id = device.id;
  ApiFacts facts;
  facts.api = Api::opencl;
  facts.version = api_version(text(library, id, CL_DEVICE_VERSION));
  facts.device_name = text(library, id, CL_DEVICE_NAME);
  facts.vendor = text(library, id, CL_DEVICE_VENDOR);
  facts.driver = text(library, device.platform, CL_PLATFORM_NAME) + " " + device.driver_version;
  facts.library = library.path;
  facts.precisions = precisions(library, id);
  facts.dot_product = dot_product(library, id);
  facts.global_bytes = info<cl_ulong>(library, id, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.max_buffer_bytes = info<cl_ulong>(library, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.local_bytes = info<cl_ulong>(library, id, CL_DEVICE_LOCAL_MEM_SIZE);
  facts.max_work_group = info<size_t>(library, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  facts.max_work_item_sizes = work_item_sizes(library, id);
  facts.compute_units = info<cl_uint>(library, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  facts.clock_mhz = info<cl_uint>(library, id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  facts.offset_alignment = std::max<cl_uint>(8, info<cl_uint>(library, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN)) / 8;
  if (info<cl_bool>(library, id, CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE) {
    facts.max_image_width = info<size_t>(library, id, CL_DEVICE_IMAGE2D_MAX_WIDTH);
    facts.max_image_height = info<size_t>(library, id, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
  }
  facts.int64 = text(library, id, CL_DEVICE_PROFILE) != "EMBEDDED_PROFILE" || offers(library, id, "cles_khr_int64");
  add_matrix_units(library, id, facts);
  facts.unified_memory = info<cl_bool>(library, id, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  return facts;
}

int rank(cl_device_type type) { return type & CL_DEVICE_TYPE_GPU ? 0 : type & CL_DEVICE_TYPE_CPU ? 2 : 1; }

void add_devices(const Library& library, cl_platform_id platform, std::vector<Device>& out) {
  cl_uint count = 0;
  if (library.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_device_id> ids(count);
  library.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
  for (cl_device_id id : ids) {
    Device device{platform, id, info<cl_device_type>(library, id, CL_DEVICE_TYPE),
                  text(library, platform, CL_PLATFORM_VERSION), text(library, id, CL_DRIVER_VERSION), {}};
    device.facts = facts_of(library, device);
    out.push_back(std::move(device));
  }
}

}  // namespace

bool offers(const Library& library, cl_device_id device, const std::string& extension) {
  const std::string extensions = " " + text(library, device, CL_DEVICE_EXTENSIONS) + " ";
  return extensions.find(" " + extension + " ") != std::string::npos;
}

Result<std::vector<Device>> list_devices(const Library& library) {
  cl_uint count = 0;
  library.clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  library.clGetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<Device> out;
  for (cl_platform_id platform : platforms) add_devices(library, platform, out);
  if (out.empty()) return Error{Code::no_device, library.path + ": no OpenCL platform has a device"};
  std::stable_sort(out.begin(), out.end(), [](const Device& a, const Device& b) { return rank(a.type) < rank(b.type); });
  return out;
}

}  // namespace pocketfarm::opencl
