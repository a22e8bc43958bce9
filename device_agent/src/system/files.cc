#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace pocketfarm {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Error io_error(const std::string& what, const std::string& path, int cause) {
  const bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
  const std::string message = path + ": " + what + ": " + strerror(cause);
  return {full ? Code::storage_full : Code::io, full ? message + "; free some storage" : message};
}

namespace {

constexpr size_t kMostOfANode = 1 << 20;

struct OpenFile {
  Descriptor fd;
  size_t bytes;
};

Result<OpenFile> open_regular(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return io_error("cannot open", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return io_error("cannot stat", path, errno);
  if (!S_ISREG(info.st_mode)) return Error{Code::io, path + ": not a regular file"};
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX)
    return Error{Code::limit, path + ": " + std::to_string(info.st_size) + " bytes do not fit the address space"};
  return OpenFile{std::move(fd), static_cast<size_t>(info.st_size)};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto opened = open_regular(path);
  if (!opened) return opened.error();
  MappedFile file;
  if (opened->bytes == 0) return file;
  void* data = ::mmap(nullptr, opened->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, opened->fd.get(), 0);
  if (data == MAP_FAILED) return io_error("cannot map", path, errno);
  file.data_ = static_cast<std::byte*>(data);
  file.bytes_ = opened->bytes;
  return file;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Result<size_t> read_some(const Descriptor& fd, void* data, size_t bytes, const std::string& path,
                         std::optional<int64_t> offset) {
  ssize_t got;
  do got = offset ? ::pread(fd.get(), data, bytes, static_cast<off_t>(*offset)) : ::read(fd.get(), data, bytes);
  while (got < 0 && errno == EINTR);
  if (got < 0) return io_error("cannot read", path, errno);
  return static_cast<size_t>(got);
}

Result<std::string> read_all(const Descriptor& fd, size_t max_bytes, const std::string& path) {
  std::string content;
  char part[16384];
  while (content.size() < max_bytes) {
    const auto got = read_some(fd, part, std::min(sizeof part, max_bytes - content.size()), path);
    if (!got) return got.error();
    if (*got == 0) break;
    content.append(part, *got);
  }
  return content;
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const auto opened = open_regular(path);
  if (!opened) return opened.error();
  if (opened->bytes > max_bytes)
    return Error{Code::limit, path + ": " + std::to_string(opened->bytes) + " bytes; at most " +
                                  std::to_string(max_bytes) + " are accepted"};
  auto content = read_all(opened->fd, opened->bytes, path);
  if (content && content->size() < opened->bytes) return Error{Code::io, path + ": became shorter while it was read"};
  return content;
}

Status write_all(int fd, const void* data, size_t bytes, const std::string& path) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("cannot write", path, errno);
    from += written, bytes -= static_cast<size_t>(written);
  }
  return kOk;
}

Status write_file(const std::string& path, const void* data, size_t bytes) {
  const std::string part = path + ".part" + std::to_string(::getpid());
  Descriptor fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return io_error("cannot create", part, errno);
  Status failed = write_all(fd.get(), data, bytes, path);
  if (!failed && ::rename(part.c_str(), path.c_str()) != 0) failed = io_error("cannot rename to it", path, errno);
  if (failed) ::unlink(part.c_str());
  return failed;
}

Status make_folder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) return io_error("cannot make the folder", part, errno);
    if (end == std::string::npos) return kOk;
  }
}

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> out;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  ::closedir(dir);
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> read_bytes(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return io_error("cannot open", path, errno);
  return read_all(fd, kMostOfANode, path);
}

std::string read_node(const std::string& path) {
  auto content = read_bytes(path);
  return content ? without_trailing_space(std::move(*content)) : "";
}

std::string without_trailing_space(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

}  // namespace pocketfarm
