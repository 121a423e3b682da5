#include "parquet/words.hpp"

#include <algorithm>
#include <limits>

#include "arrow/errors.hpp"
#include "parquet/cells.hpp"
#include "parquet/wild_copy.hpp"

namespace bireme::parquet {

namespace {

constexpr uint32_t kBlockWords = 1024;
// Longer words are copied in steps of so many bytes, needed or not: how many steps there are can then mostly
// be predicted.
constexpr int64_t kStepBytes = kWildCopyBytes;
constexpr int64_t kPaddingBytes = 64;  // that a buffer has anyway
constexpr double kGuessFactor = 1.05;
constexpr int64_t kGuessBytesMax = int64_t{64} << 20;
constexpr int64_t kLengthBytes = 4;

// Walks over words one by one.
class WordCursor {
 public:
  WordCursor(Bytes bytes, int64_t index, int64_t offset)
      : at_(bytes.data() + offset), end_(bytes.data() + bytes.size()), begin_(bytes.data()), index_(index) {}

  // The bytes of the next word.
  Bytes next() {
    if (end_ - at_ < kLengthBytes) corrupt("it is shorter than its values");
    const auto length = load<uint32_t>(at_);
    if (length > static_cast<uint64_t>(end_ - at_ - kLengthBytes)) corrupt("a value is longer than its page");
    const uint8_t* word = at_ + kLengthBytes;
    at_ = word + length;
    ++index_;
    return {word, length};
  }
  void skip_to(int64_t index) {
    while (index_ < index) next();
  }
  int64_t index() const { return index_; }
  int64_t offset() const { return at_ - begin_; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* begin_;
  int64_t index_;
};

}  // namespace

// Makes room for `bytes` more of so many words.
void WordWriter::reserve(int64_t bytes, int64_t words) {
  if (size_ + bytes > std::numeric_limits<int32_t>::max()) {
    throw Unsupported("a batch with more than 2 GiB of text in a column");
  }
  words_ += words;
  const int64_t wanted = size_ + bytes + kWildCopyBytes;
  if (bytes_.capacity() >= wanted + kPaddingBytes) return;
  const double bytes_per_word =
      static_cast<double>(size_ + bytes) / static_cast<double>(std::max<int64_t>(1, words_));
  const auto guess =
      static_cast<int64_t>(bytes_per_word * static_cast<double>(words_expected_) * kGuessFactor);
  bytes_.shrink(size_);
  bytes_.grow(std::max(wanted, std::min(guess, kGuessBytesMax)));
}

// There is room for kWildCopyBytes more than all that is put.
inline void WordWriter::put(const uint8_t* from, int64_t length, const uint8_t* readable_end) {
  uint8_t* to = bytes_.as<uint8_t>() + size_;
  size_ += length;
  if (readable_end - from < length + kStepBytes) [[unlikely]] {
    std::memcpy(to, from, static_cast<size_t>(length));
  } else if (length <= 16) {
    copy_16(to, from);
  } else {
    for (int64_t done = 0; done < length; done += kStepBytes) {
      for (int64_t part = 0; part < kStepBytes; part += 16) copy_16(to + done + part, from + done + part);
    }
  }
}

void WordWriter::append(Page& page, const Positions& positions, const Column* dictionary, int32_t* ends) {
  if (positions.count == 0) return;
  switch (page.form) {
    case Form::Codes:
      if (dictionary == nullptr) corrupt("codes without a dictionary");
      return append_codes(page, positions, *dictionary, ends);
    case Form::Words:
      return append_words(page, positions, ends);
    case Form::Spans:
      return append_spans(page, positions, ends);
    case Form::Cells:
      return append_cells(page, positions, ends);
    case Form::Split:
      return append_split(page, positions, ends);
    default:
      throw EngineBug("a page of strings in a form for others");
  }
}

void WordWriter::append_words(Page& page, const Positions& positions, int32_t* ends) {
  const bool is_before = positions[0] < page.word_index;
  WordCursor words(page.values, is_before ? 0 : page.word_index, is_before ? 0 : page.word_offset);
  const uint8_t* readable_end = page.values.data() + page.values.size();
  Bytes found[kBlockWords];
  for (uint32_t done = 0; done < positions.count; done += kBlockWords) {
    const uint32_t count = std::min(kBlockWords, positions.count - done);
    int64_t bytes = 0;
    for (uint32_t index = 0; index < count; ++index) {
      words.skip_to(positions[done + index]);
      found[index] = words.next();
      bytes += static_cast<int64_t>(found[index].size());
    }
    reserve(bytes, count);
    for (uint32_t index = 0; index < count; ++index) {
      put(found[index].data(), static_cast<int64_t>(found[index].size()), readable_end);
      ends[done + index] = static_cast<int32_t>(size_);
    }
  }
  page.word_index = words.index();
  page.word_offset = words.offset();
}

void WordWriter::append_spans(const Page& page, const Positions& positions, int32_t* ends) {
  const auto* offsets = page.spans.offsets.as<int32_t>();
  const uint8_t* readable_end = page.values.data() + page.values.size();
  int64_t bytes = 0;
  for (uint32_t index = 0; index < positions.count; ++index) {
    bytes += offsets[positions[index] + 1] - offsets[positions[index]];
  }
  reserve(bytes, positions.count);
  for (uint32_t index = 0; index < positions.count; ++index) {
    const int32_t begin = offsets[positions[index]];
    put(page.values.data() + begin, offsets[positions[index] + 1] - begin, readable_end);
    ends[index] = static_cast<int32_t>(size_);
  }
}

void WordWriter::append_split(const Page& page, const Positions& positions, int32_t* ends) {
  reserve(cell_bytes_ * positions.count, positions.count);
  uint8_t* to = bytes_.as<uint8_t>() + size_;
  for (uint32_t index = 0; index < positions.count; ++index) {
    const uint8_t* from = page.values.data() + positions[index];
    for (int64_t byte = 0; byte < cell_bytes_; ++byte) *to++ = from[byte * page.split_cells];
    size_ += cell_bytes_;
    ends[index] = static_cast<int32_t>(size_);
  }
}

void WordWriter::append_cells(const Page& page, const Positions& positions, int32_t* ends) {
  reserve(cell_bytes_ * positions.count, positions.count);
  const uint8_t* readable_end = page.values.data() + page.values.size();
  for (uint32_t index = 0; index < positions.count; ++index) {
    put(page.values.data() + positions[index] * cell_bytes_, cell_bytes_, readable_end);
    ends[index] = static_cast<int32_t>(size_);
  }
}

void WordWriter::append_codes(const Page& page, const Positions& positions, const Column& dictionary,
                              int32_t* ends) {
  Buffer codes(int64_t{positions.count} * 4);
  auto* code = codes.as<uint32_t>();
  read_page_codes(page, positions, dictionary.rows, code);
  const int32_t* offsets = dictionary.offsets;
  int64_t bytes = 0;
  for (uint32_t index = 0; index < positions.count; ++index)
    bytes += offsets[code[index] + 1] - offsets[code[index]];
  reserve(bytes, positions.count);
  const auto* words = dictionary.as<uint8_t>();
  const uint8_t* readable_end = words + offsets[dictionary.rows];
  for (uint32_t index = 0; index < positions.count; ++index) {
    const int32_t begin = offsets[code[index]];
    put(words + begin, offsets[code[index] + 1] - begin, readable_end);
    ends[index] = static_cast<int32_t>(size_);
  }
}

Buffer WordWriter::take() {
  if (!bytes_) bytes_ = Buffer(0);
  bytes_.shrink(size_);
  size_ = 0;
  words_ = 0;
  return std::move(bytes_);
}

}  // namespace bireme::parquet
