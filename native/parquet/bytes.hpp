// Reading bytes that may be wrong: unaligned loads, and a cursor that never passes its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "parquet/chunk.hpp"

namespace bireme::parquet {

using Bytes = std::span<const uint8_t>;

// Parquet is little-endian, and so are all machines that this is built for.
template <typename T>
T load(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store(void* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

[[noreturn]] inline void corrupt(const std::string& what) {
  throw Corrupt(what);
}

class Cursor {
 public:
  explicit Cursor(Bytes bytes) : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  int64_t position() const { return at_ - begin_; }
  int64_t left() const { return end_ - at_; }
  Bytes rest() const { return {at_, end_}; }

  uint8_t byte() {
    if (at_ == end_) corrupt("the bytes end too early");
    return *at_++;
  }

  // An unsigned integer of 7 bits a byte, the lowest first.
  uint64_t varint() {
    if (at_ != end_ && *at_ < 0x80) [[likely]]
      return *at_++;
    return long_varint();
  }

  // Signed integers have their sign in the lowest bit.
  int64_t zigzag() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  template <typename T>
  T fixed() {
    return load<T>(take(sizeof(T)).data());
  }

  Bytes take(uint64_t count) {
    if (count > static_cast<uint64_t>(left())) corrupt("the bytes end too early");
    const Bytes taken(at_, static_cast<size_t>(count));
    at_ += count;
    return taken;
  }

 private:
  uint64_t long_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint8_t next = byte();
      value |= static_cast<uint64_t>(next & 0x7F) << (shift < 63 ? shift : 63);
      if (next < 0x80) return value;
    }
    corrupt("an integer has too many bytes");
  }

  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace bireme::parquet
