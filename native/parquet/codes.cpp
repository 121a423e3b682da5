#include "parquet/codes.hpp"

#include <algorithm>

#include "parquet/bit_packing.hpp"

namespace bireme::parquet {

namespace {

constexpr int kWidthMax = 32;
constexpr uint64_t kRunMax = uint64_t{1} << 32;  // no page has so many values
constexpr int64_t kBlockCodes = 1024;
// Where fewer of a run's codes are wanted than one in so many, they are taken out one by one.
constexpr int64_t kSparse = 4;

// How many of the first `count` positions lie before `end`; at least the first does. They ascend, so no more
// than end - list[0].
int64_t count_before(const uint32_t* list, int64_t count, int64_t end) {
  int64_t left = std::min(count, end - list[0]);
  const uint32_t* found = list;
  while (left > 1) {  // halves without a branch that could be mispredicted
    const int64_t half = left / 2;
    found += found[half - 1] < end ? half : 0;
    left -= half;
  }
  return found - list + (*found < end ? 1 : 0);
}

uint32_t low_bits(int count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

int checked_width(int width) {
  if (width > kWidthMax) corrupt("codes have " + std::to_string(width) + " bits");
  return width;
}

}  // namespace

CodeReader::CodeReader(Bytes runs, int width)
    : in_(runs),
      readable_end_(runs.data() + runs.size()),
      width_(checked_width(width)),
      mask_(low_bits(width)),
      code_bytes_(low_bits((width + 7) / 8 * 8)) {}

void CodeReader::next_run() {
  const uint64_t header = in_.varint();
  run_.begin = run_.end;
  run_.is_packed = (header & 1) != 0 && width_ > 0;
  if (run_.is_packed) return next_packed(header >> 1);
  const int64_t length = static_cast<int64_t>(std::min(header >> 1, kRunMax));
  run_.code = 0;
  if ((header & 1) != 0) {  // packed codes of no bits
    run_.end += 8 * length;
    return;
  }
  const auto bytes = static_cast<size_t>(width_ + 7) / 8;
  if (in_.left() >= 4) [[likely]] {
    run_.code = load<uint32_t>(in_.take(bytes).data()) & code_bytes_;
  } else if (bytes > 0) {
    std::memcpy(&run_.code, in_.take(bytes).data(), bytes);
  }
  if ((run_.code & ~mask_) != 0) corrupt("a run's code has more bits than codes have");
  run_.end += length;
}

void CodeReader::next_packed(uint64_t groups) {
  groups = std::min(groups, kRunMax);
  const uint64_t bytes = groups * static_cast<uint64_t>(width_);
  if (bytes <= static_cast<uint64_t>(in_.left())) [[likely]] {
    run_.packed = in_.take(bytes);
    run_.end += static_cast<int64_t>(8 * groups);
  } else {  // the last run may be cut where its codes end
    run_.packed = in_.take(static_cast<uint64_t>(in_.left()));
    run_.end += static_cast<int64_t>(8 * run_.packed.size()) / width_;
  }
}

const CodeReader::Run& CodeReader::run_at(int64_t position) {
  while (position >= run_.end) next_run();
  return run_;
}

uint32_t CodeReader::code_at(int64_t index) const {
  return static_cast<uint32_t>(packed_at(run_.packed.data(), readable_end_, width_, index));
}

uint32_t CodeReader::unpack(int64_t first, int64_t count, uint32_t* out) const {
  return unpack_bits(run_.packed.data(), readable_end_, width_, first, count, out);
}

uint32_t CodeReader::read_list(const uint32_t* list, int64_t count, uint32_t* out) const {
  uint32_t largest = 0;
  const auto begin = static_cast<uint32_t>(run_.begin);
  const int64_t spread = list[count - 1] - list[0] + 1;
  if (count * kSparse < spread || spread > kBlockCodes) {
    for (int64_t index = 0; index < count; ++index) {
      out[index] = code_at(list[index] - begin);
      largest = std::max(largest, out[index]);
    }
    return largest;
  }
  uint32_t codes[kBlockCodes];
  largest = unpack(list[0] - begin, spread, codes);
  for (int64_t index = 0; index < count; ++index) out[index] = codes[list[index] - list[0]];
  return largest;
}

uint32_t CodeReader::read(const Positions& positions, uint32_t* out) {
  uint32_t largest = 0;
  for (int64_t done = 0; done < positions.count;) {
    const int64_t position = positions[static_cast<uint32_t>(done)];
    const Run& run = run_at(position);
    int64_t count = positions.count - done;
    // Of a list in pieces whose codes, if they are dense, fit the block.
    const int64_t end = run.is_packed ? std::min(run.end, position + kBlockCodes) : run.end;
    count = positions.is_range() ? std::min(count, run.end - position)
                                 : count_before(positions.list + done, count, end);
    if (!run.is_packed) {
      std::fill_n(out + done, count, run.code);
      largest = std::max(largest, run.code);
    } else if (positions.is_range()) {
      largest = std::max(largest, unpack(position - run.begin, count, out + done));
    } else {
      largest = std::max(largest, read_list(positions.list + done, count, out + done));
    }
    done += count;
  }
  return largest;
}

int64_t CodeReader::select(const Positions& positions, uint32_t first_row, const uint32_t* rows,
                           const Keep& keep, uint32_t* out) {
  int64_t kept = 0;
  uint32_t codes[kBlockCodes];
  for (uint32_t done = 0; done < positions.count;) {
    const int64_t position = positions[done];
    const Run& run = run_at(position);
    int64_t count = positions.count - done;
    count = positions.is_range() ? std::min(count, run.end - position)
                                 : count_before(positions.list + done, count, run.end);
    if (run.is_packed) count = std::min(count, kBlockCodes);
    const auto length = static_cast<uint32_t>(count);
    const uint32_t largest = run.is_packed ? read(positions.slice(done, length), codes) : run.code;
    if (largest >= keep.count) corrupt("a code stands for no dictionary entry");
    if (run.is_packed) {
      kept += rows == nullptr ? loops().select_range(codes, count, first_row + done, keep, out + kept)
                              : loops().select_list(codes, count, rows + done, keep, out + kept);
    } else if (keep.flags[run.code] != 0) {
      if (rows == nullptr) {
        for (uint32_t index = 0; index < length; ++index) out[kept + index] = first_row + done + index;
      } else {
        std::memmove(out + kept, rows + done, length * sizeof(uint32_t));
      }
      kept += count;
    }
    done += length;
  }
  return kept;
}

}  // namespace bireme::parquet
