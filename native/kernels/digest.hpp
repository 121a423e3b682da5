// Digests of bytes: MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4).
#pragma once

#include <cstdint>
#include <string_view>

namespace bireme {

inline constexpr int kMd5Bytes = 16;
inline constexpr int kSha1Bytes = 20;
inline constexpr int kSha256Bytes = 32;

void md5(std::string_view bytes, uint8_t* digest);
void sha1(std::string_view bytes, uint8_t* digest);
void sha256(std::string_view bytes, uint8_t* digest);

}  // namespace bireme
