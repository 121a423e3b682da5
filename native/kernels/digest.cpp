#include "kernels/digest.hpp"

#include <bit>
#include <cstring>

namespace bireme {

namespace {

constexpr size_t kBlockBytes = 64;

constexpr uint32_t kSines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
constexpr int kMd5Turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
constexpr uint32_t kCubeRoots[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t load_little(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

uint32_t load_big(const uint8_t* bytes) {
  return __builtin_bswap32(load_little(bytes));
}

// Takes all whole blocks, then what is left, a bit, zeros and the length in bits.
template <typename Digest>
void digest_blocks(std::string_view bytes, Digest& digest) {
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= kBlockBytes; left -= kBlockBytes, from += kBlockBytes) digest.take(from);
  uint8_t last[2 * kBlockBytes] = {};
  if (left > 0) std::memcpy(last, from, left);
  last[left] = 0x80;
  const size_t padded = left + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const uint64_t bits = uint64_t{8} * bytes.size();
  const uint64_t length = Digest::kIsBig ? __builtin_bswap64(bits) : bits;
  std::memcpy(last + padded - 8, &length, sizeof length);
  digest.take(last);
  if (padded > kBlockBytes) digest.take(last + kBlockBytes);
}

template <typename Digest>
void digest_of(std::string_view bytes, uint8_t* out) {
  Digest digest;
  digest_blocks(bytes, digest);
  for (uint32_t word : digest.state) {
    if (Digest::kIsBig) word = __builtin_bswap32(word);
    std::memcpy(out, &word, sizeof word);
    out += sizeof word;
  }
}

struct Md5 {
  static constexpr bool kIsBig = false;
  uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

  template <int round>
  static void step(uint32_t* s, const uint32_t* words, int index) {
    const uint32_t b = s[1], c = s[2], d = s[3];
    uint32_t mixed;
    int word;
    if constexpr (round == 0) {
      mixed = d ^ (b & (c ^ d));
      word = index;
    } else if constexpr (round == 1) {
      mixed = c ^ (d & (b ^ c));
      word = (5 * index + 1) % 16;
    } else if constexpr (round == 2) {
      mixed = b ^ c ^ d;
      word = (3 * index + 5) % 16;
    } else {
      mixed = c ^ (b | ~d);
      word = (7 * index) % 16;
    }
    const uint32_t sum = s[0] + mixed + kSines[16 * round + index] + words[word];
    s[0] = d;
    s[3] = c;
    s[2] = b;
    s[1] = b + std::rotl(sum, kMd5Turns[round][index % 4]);
  }

  template <int round>
  static void steps(uint32_t* s, const uint32_t* words) {
#pragma GCC unroll 16
    for (int index = 0; index < 16; ++index) step<round>(s, words, index);
  }

  void take(const uint8_t* block) {
    uint32_t words[16];
    for (int index = 0; index < 16; ++index) words[index] = load_little(block + 4 * index);
    uint32_t s[4] = {state[0], state[1], state[2], state[3]};
    steps<0>(s, words);
    steps<1>(s, words);
    steps<2>(s, words);
    steps<3>(s, words);
    for (int index = 0; index < 4; ++index) state[index] += s[index];
  }
};

struct Sha1 {
  static constexpr bool kIsBig = true;
  uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

  static uint32_t mixed(int index, uint32_t b, uint32_t c, uint32_t d) {
    switch (index / 20) {
      case 0:
        return (d ^ (b & (c ^ d))) + 0x5a827999;
      case 1:
        return (b ^ c ^ d) + 0x6ed9eba1;
      case 2:
        return ((b & c) | (d & (b | c))) + 0x8f1bbcdc;
      default:
        return (b ^ c ^ d) + 0xca62c1d6;
    }
  }

  void take(const uint8_t* block) {
    uint32_t words[80];
    for (int index = 0; index < 16; ++index) words[index] = load_big(block + 4 * index);
    for (int index = 16; index < 80; ++index) {
      words[index] =
          std::rotl(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
#pragma GCC unroll 80
    for (int index = 0; index < 80; ++index) {
      const uint32_t sum = std::rotl(a, 5) + mixed(index, b, c, d) + e + words[index];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = sum;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
  }
};

struct Sha256 {
  static constexpr bool kIsBig = true;
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

  static uint32_t next_word(const uint32_t* w, int index) {
    const uint32_t early = w[(index + 1) % 16];
    const uint32_t late = w[(index + 14) % 16];
    return w[index % 16] + w[(index + 9) % 16] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3)) +
           (std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10));
  }

  static void step(uint32_t* s, uint32_t word, uint32_t root) {
    const uint32_t a = s[0], e = s[4];
    const uint32_t first = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           (s[6] ^ (e & (s[5] ^ s[6]))) + root + word;
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & s[1]) | (s[2] & (a | s[1])));
    s[7] = s[6];
    s[6] = s[5];
    s[5] = e;
    s[4] = s[3] + first;
    s[3] = s[2];
    s[2] = s[1];
    s[1] = a;
    s[0] = first + second;
  }

  void take(const uint8_t* block) {
    uint32_t words[16];
    for (int index = 0; index < 16; ++index) words[index] = load_big(block + 4 * index);
    uint32_t s[8];
    std::memcpy(s, state, sizeof s);
    for (int first = 0; first < 64; first += 16) {
#pragma GCC unroll 16
      for (int index = 0; index < 16; ++index) {
        if (first > 0) words[index] = next_word(words, index);
        step(s, words[index], kCubeRoots[first + index]);
      }
    }
    for (int index = 0; index < 8; ++index) state[index] += s[index];
  }
};

}  // namespace

void md5(std::string_view bytes, uint8_t* digest) {
  digest_of<Md5>(bytes, digest);
}
void sha1(std::string_view bytes, uint8_t* digest) {
  digest_of<Sha1>(bytes, digest);
}
void sha256(std::string_view bytes, uint8_t* digest) {
  digest_of<Sha256>(bytes, digest);
}

}  // namespace bireme
