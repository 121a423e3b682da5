#include "kernels/joined_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/gather.hpp"
#include "kernels/group_read.hpp"
#include "kernels/group_text.hpp"

namespace bireme {

namespace {

// Dictionaries of more entries than this, and than a share of the rows, are not worth keeping.
constexpr int64_t kEntriesSmall = 4096;
constexpr int64_t kRowsPerEntry = 8;

const std::string_view kNoText;

std::string_view text_of(const Column& column, int64_t row) {
  if (!column.is_valid(row)) return kNoText;
  if (!column.is_dictionary()) return column.string_at(row);
  const int32_t code = column.codes()[row];
  return column.dictionary->is_valid(code) ? column.dictionary->string_at(code) : kNoText;
}

bool is_valid_text(const Column& column, int64_t row) {
  return column.is_valid(row) &&
         (!column.is_dictionary() || column.dictionary->is_valid(column.codes()[row]));
}

bool same_dictionary(const Column& left, const Column& right) {
  return left.is_dictionary() && right.is_dictionary() &&
         left.dictionary->values == right.dictionary->values &&
         left.dictionary->offsets == right.dictionary->offsets &&
         left.dictionary->rows == right.dictionary->rows;
}

}  // namespace

struct JoinedChunks::Target {
  OutputColumn column;
  bool has_nulls = false;
  bool coded = false;
  std::vector<int64_t> first_bytes;          // of text: where each chunk's begins
  TextIndex entries;                         // of codes: all entries of all dictionaries
  std::vector<std::vector<int32_t>> recode;  // of codes: per chunk, what its codes become
};

JoinedChunks::~JoinedChunks() = default;

bool JoinedChunks::possible(const std::vector<const Batch*>& chunks) {
  const Batch& first = *chunks[0];
  for (const Batch* chunk : chunks) {
    if (chunk->count() != first.count()) return false;
    for (int index = 0; index < first.count(); ++index) {
      const Column& column = (*chunk)[index];
      if (column.type.kind != first[index].type.kind || !can_gather(column.type.kind) ||
          (column.is_dictionary() && !is_string(column.type.kind)))
        return false;
    }
  }
  return true;
}

JoinedChunks::JoinedChunks(std::vector<const Batch*> chunks) : chunks_(std::move(chunks)) {
  first_rows_.push_back(0);
  for (const Batch* chunk : chunks_) first_rows_.push_back(first_rows_.back() + chunk->rows());
  targets_ = std::vector<Target>(static_cast<size_t>(chunks_[0]->count()));
  for (int column = 0; column < chunks_[0]->count(); ++column)
    lay_out(targets_[static_cast<size_t>(column)], column);
}

void JoinedChunks::lay_out(Target& target, int column) {
  OutputColumn& out = target.column;
  out.type = (*chunks_[0])[column].type;
  out.rows = first_rows_.back();
  if (out.type.kind == Kind::Null) {
    out.null_count = out.rows;
    return;
  }
  for (const Batch* chunk : chunks_) {
    const Column& source = (*chunk)[column];
    target.has_nulls |=
        source.may_have_nulls() || (source.is_dictionary() && source.dictionary->may_have_nulls());
  }
  if (target.has_nulls) out.validity = Buffer::zeroed(bitmap_bytes(out.rows));
  out.null_count = target.has_nulls ? -1 : 0;
  if (out.type.kind == Kind::Bool) {
    out.values = Buffer::zeroed(bitmap_bytes(out.rows));
  } else if (!is_string(out.type.kind)) {
    out.values = Buffer(out.rows * width_of(out.type.kind));
  } else if (unify(target, column)) {
    target.coded = true;
    out.values = Buffer(out.rows * 4);
  } else {
    lay_out_text(target, column);
  }
}

// Gives the entries of all dictionaries numbers; false where there are too many, or some chunk has none.
bool JoinedChunks::unify(Target& target, int column) {
  int64_t total = 0;
  const Column* last = nullptr;
  for (const Batch* chunk : chunks_) {
    const Column& source = (*chunk)[column];
    if (!source.is_dictionary()) return false;
    if (last == nullptr || !same_dictionary(*last, source)) total += source.dictionary->rows;
    last = &source;
  }
  if (total > std::max(kEntriesSmall, first_rows_.back() / kRowsPerEntry)) return false;
  last = nullptr;
  for (const Batch* chunk : chunks_) {
    const Column& source = (*chunk)[column];
    if (last != nullptr && same_dictionary(*last, source)) {
      target.recode.push_back(target.recode.back());
      continue;
    }
    std::vector<int32_t>& codes = target.recode.emplace_back();
    const Column& dictionary = *source.dictionary;
    target.entries.reserve_more(dictionary.rows);
    for (int64_t entry = 0; entry < dictionary.rows; ++entry) {
      const Text text = dictionary.is_valid(entry) ? text_at(dictionary, entry) : Text{};
      codes.push_back(static_cast<int32_t>(target.entries.find_or_add(text, hash_text(text))));
    }
    last = &source;
  }
  return true;
}

void JoinedChunks::lay_out_text(Target& target, int column) {
  int64_t total = 0;
  for (const Batch* chunk : chunks_) {
    target.first_bytes.push_back(total);
    const Column& source = (*chunk)[column];
    if (!source.is_dictionary() && !source.may_have_nulls()) {
      total += source.rows == 0 ? 0 : source.offsets[source.rows] - source.offsets[0];
    } else {
      for (int64_t row = 0; row < source.rows; ++row)
        total += static_cast<int64_t>(text_of(source, row).size());
    }
    if (total > std::numeric_limits<int32_t>::max()) {
      throw Unsupported("more than 2 GiB of text in one column of rows that are put together; use fewer columns");
    }
  }
  target.column.offsets = Buffer((target.column.rows + 1) * 4);
  target.column.offsets.as<int32_t>()[target.column.rows] = static_cast<int32_t>(total);
  target.column.values = Buffer(total);
}

void JoinedChunks::copy(size_t chunk) {
  for (int column = 0; column < chunks_[0]->count(); ++column) {
    copy_column(targets_[static_cast<size_t>(column)], column, chunk);
  }
}

void JoinedChunks::copy_column(Target& target, int column, size_t chunk) const {
  const Column& source = (*chunks_[chunk])[column];
  const int64_t first = first_rows_[chunk];
  OutputColumn& out = target.column;
  if (out.type.kind == Kind::Null || source.rows == 0) return;
  if (target.has_nulls) {
    Cells<uint8_t> bits;
    bits.resize(bitmap_bytes(source.rows), 0);
    for (int64_t row = 0; row < source.rows; ++row) {
      bits[row >> 3] |= static_cast<uint8_t>(uint32_t{is_valid_text(source, row)} << (row & 7));
    }
    copy_bits(bits.data(), 0, source.rows, out.validity.as<uint8_t>(), first);
  }
  if (out.type.kind == Kind::Bool) {
    copy_bits(source.as<uint8_t>(), source.bool_offset, source.rows, out.values.as<uint8_t>(), first);
  } else if (target.coded) {
    copy_codes(target, source, chunk);
  } else if (is_string(out.type.kind)) {
    copy_text(target, source, chunk);
  } else {
    const int64_t width = width_of(out.type.kind);
    std::memcpy(out.values.as<char>() + first * width, source.values,
                static_cast<size_t>(source.rows * width));
  }
}

void JoinedChunks::copy_codes(Target& target, const Column& source, size_t chunk) const {
  int32_t* codes = target.column.values.as<int32_t>() + first_rows_[chunk];
  const std::vector<int32_t>& recode = target.recode[chunk];
  for (int64_t row = 0; row < source.rows; ++row) {
    codes[row] = source.is_valid(row) ? recode[static_cast<size_t>(source.codes()[row])] : 0;
  }
}

void JoinedChunks::copy_text(Target& target, const Column& source, size_t chunk) const {
  int32_t* offsets = target.column.offsets.as<int32_t>() + first_rows_[chunk];
  char* bytes = target.column.values.as<char>();
  int64_t at = target.first_bytes[chunk];
  if (!source.is_dictionary() && !source.may_have_nulls()) {
    const int64_t shift = at - source.offsets[0];
    for (int64_t row = 0; row < source.rows; ++row)
      offsets[row] = static_cast<int32_t>(source.offsets[row] + shift);
    const int32_t length = source.offsets[source.rows] - source.offsets[0];
    if (length > 0)
      std::memcpy(bytes + at, source.as<char>() + source.offsets[0], static_cast<size_t>(length));
    return;
  }
  for (int64_t row = 0; row < source.rows; ++row) {
    offsets[row] = static_cast<int32_t>(at);
    const std::string_view text = text_of(source, row);
    if (!text.empty()) std::memcpy(bytes + at, text.data(), text.size());
    at += static_cast<int64_t>(text.size());
  }
}

JoinedChunks::Result JoinedChunks::take() {
  Result result;
  result.rows = first_rows_.back();
  for (Target& target : targets_) {
    if (target.coded) {
      Cells<Text> texts;
      for (uint32_t entry = 0; entry < target.entries.size(); ++entry) texts.push_back(target.entries[entry]);
      OutputColumn entries = column_of_texts(target.column.type, texts.data(), nullptr, texts.size());
      result.dictionaries.emplace_back(static_cast<int>(result.columns.size()), std::move(entries));
      target.column.type = simple_type(Kind::Int32);
    }
    result.columns.push_back(std::move(target.column));
  }
  return result;
}

}  // namespace bireme
