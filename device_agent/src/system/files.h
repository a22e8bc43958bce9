// Files as values: RAII descriptors, whole reads and writes, errors with path and cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "status.h"

namespace pocketfarm {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A file's bytes, mapped: what is written there stays in this process.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// The one place where the agent reads: one read of at most `bytes`, from `offset` where there is one. How many came;
// 0 at the end. Error `io` with the cause: a node of /proc ends with ESRCH when its process does.
Result<size_t> read_some(const Descriptor& fd, void* data, size_t bytes, const std::string& path,
                         std::optional<int64_t> offset = std::nullopt);
// Reads until the end or until there are `max_bytes`.
Result<std::string> read_all(const Descriptor& fd, size_t max_bytes, const std::string& path);
// The whole of a regular file. `limit` where it has more than `max_bytes`.
Result<std::string> read_file(const std::string& path, size_t max_bytes);
// Writes through a temporary file and a rename, so that a reader never sees a part.
Status write_file(const std::string& path, const void* data, size_t bytes);
Status write_all(int fd, const void* data, size_t bytes, const std::string& path);
Status make_folder(const std::string& path);
// Names in a folder, sorted; none where it cannot be read.
std::vector<std::string> entries(const std::string& folder);
// Content of a node of /proc or /sys, at most 1 MiB.
Result<std::string> read_bytes(const std::string& path);
// The same without the trailing white space; empty where it cannot be read.
std::string read_node(const std::string& path);
std::string without_trailing_space(std::string text);
// `io`, or `storage_full` where errno says so.
Error io_error(const std::string& what, const std::string& path, int cause);

}  // namespace pocketfarm
