// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pocketfarm {

class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  // Ends the message; 64 lower-case hex digits.
  std::string hex();

 private:
  void blocks(const uint8_t* data, size_t count);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(const void* data, size_t bytes);
inline std::string sha256_hex(std::string_view text) { return sha256_hex(text.data(), text.size()); }

}  // namespace pocketfarm
