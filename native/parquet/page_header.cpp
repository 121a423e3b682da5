#include "parquet/page_header.hpp"

#include <limits>

namespace bireme::parquet {

namespace {

enum Thrift : uint8_t {
  kStop = 0,
  kTrue,
  kFalse,
  kByte,
  kI16,
  kI32,
  kI64,
  kDouble,
  kBinary,
  kList,
  kSet,
  kMap,
  kStruct
};

constexpr int kDepthMax = 16;

void skip_value(Cursor& in, uint8_t type, int depth);

// Calls on_field(id, type) for every field of a struct, which reads the value or returns false to have it
// skipped.
template <typename OnField>
void read_struct(Cursor& in, int depth, OnField on_field) {
  if (depth > kDepthMax) corrupt("a page header is nested too deeply");
  int64_t id = 0;
  while (true) {
    const uint8_t header = in.byte();
    const uint8_t type = header & 0x0F;
    if (type == kStop) return;
    id = (header >> 4) != 0 ? id + (header >> 4) : static_cast<int16_t>(in.zigzag());
    if (!on_field(id, type)) skip_value(in, type, depth);
  }
}

// Inside a collection a boolean takes a byte; as a field it is in the header.
void skip_element(Cursor& in, uint8_t type, int depth) {
  if (type == kTrue || type == kFalse) {
    in.byte();
  } else {
    skip_value(in, type, depth);
  }
}

void skip_elements(Cursor& in, uint64_t count, uint8_t first, uint8_t second, int depth) {
  // Every element takes a byte or more, but for structs without fields, which take one too.
  if (count > static_cast<uint64_t>(in.left())) corrupt("a list in a page header is longer than the bytes");
  for (uint64_t index = 0; index < count; ++index) {
    skip_element(in, first, depth);
    if (second != kStop) skip_element(in, second, depth);
  }
}

void skip_value(Cursor& in, uint8_t type, int depth) {
  switch (type) {
    case kTrue:
    case kFalse:
      return;
    case kByte:
      in.byte();
      return;
    case kI16:
    case kI32:
    case kI64:
      in.varint();
      return;
    case kDouble:
      in.take(8);
      return;
    case kBinary:
      in.take(in.varint());
      return;
    case kList:
    case kSet: {
      if (depth > kDepthMax) corrupt("a page header is nested too deeply");
      const uint8_t header = in.byte();
      const uint64_t count = (header >> 4) == 15 ? in.varint() : header >> 4;
      skip_elements(in, count, header & 0x0F, kStop, depth + 1);
      return;
    }
    case kMap: {
      if (depth > kDepthMax) corrupt("a page header is nested too deeply");
      const uint64_t count = in.varint();
      const uint8_t types = count == 0 ? 0 : in.byte();
      if (count > 0 && ((types >> 4) == 0 || (types & 0x0F) == 0))
        corrupt("a map in a page header has no types");
      skip_elements(in, count, types >> 4, types & 0x0F, depth + 1);
      return;
    }
    case kStruct:
      read_struct(in, depth + 1, [](int64_t, uint8_t) { return false; });
      return;
    default:
      corrupt("a page header has a field of an unknown type");
  }
}

int32_t read_int(Cursor& in, uint8_t type) {
  if (type != kI32) corrupt("a page header has a field of the wrong type");
  const int64_t value = in.zigzag();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    corrupt("a number in a page header is too large");
  }
  return static_cast<int32_t>(value);
}

int32_t read_count(Cursor& in, uint8_t type) {
  const int32_t value = read_int(in, type);
  if (value < 0) corrupt("a size in a page header is negative");
  return value;
}

Encoding read_encoding(Cursor& in, uint8_t type) {
  const int32_t value = read_int(in, type);
  if (value < 0 || value > 9 || value == 1)
    corrupt("a page has the unknown encoding " + std::to_string(value));
  return static_cast<Encoding>(value);
}

void read_data_header(Cursor& in, PageHeader& header) {
  read_struct(in, 1, [&](int64_t id, uint8_t type) {
    if (id == 1) {
      header.values = read_count(in, type);
    } else if (id == 2) {
      header.encoding = read_encoding(in, type);
    } else if (id == 3) {
      header.level_encoding = read_encoding(in, type);
    } else {
      return false;
    }
    return true;
  });
  header.rows = header.values;
}

void read_data_header_v2(Cursor& in, PageHeader& header) {
  read_struct(in, 1, [&](int64_t id, uint8_t type) {
    if (id == 1) {
      header.values = read_count(in, type);
    } else if (id == 2) {
      header.nulls = read_count(in, type);
    } else if (id == 3) {
      header.rows = read_count(in, type);
    } else if (id == 4) {
      header.encoding = read_encoding(in, type);
    } else if (id == 5) {
      header.definition_bytes = read_count(in, type);
    } else if (id == 6) {
      header.repetition_bytes = read_count(in, type);
    } else if (id == 7 && (type == kTrue || type == kFalse)) {
      header.is_compressed = type == kTrue;
    } else {
      return false;
    }
    return true;
  });
}

void read_dictionary_header(Cursor& in, PageHeader& header) {
  read_struct(in, 1, [&](int64_t id, uint8_t type) {
    if (id == 1) {
      header.values = read_count(in, type);
    } else if (id == 2) {
      header.encoding = read_encoding(in, type);
    } else {
      return false;
    }
    return true;
  });
}

PageType expected_header(int64_t id) {
  return id == 5   ? PageType::Data
         : id == 7 ? PageType::Dictionary
         : id == 8 ? PageType::DataV2
                   : PageType::Index;
}

}  // namespace

PageHeader parse_page_header(Bytes bytes) {
  Cursor in(bytes);
  PageHeader header;
  int32_t kind = -1;
  PageType described = PageType::Index;
  read_struct(in, 0, [&](int64_t id, uint8_t type) {
    if (id == 1) {
      kind = read_int(in, type);
    } else if (id == 2) {
      header.plain_bytes = read_count(in, type);
    } else if (id == 3) {
      header.stored_bytes = read_count(in, type);
    } else if (id == 4) {
      header.crc = static_cast<uint32_t>(read_int(in, type));
    } else if (type == kStruct && (id == 5 || id == 7 || id == 8)) {
      described = expected_header(id);
      if (id == 5) read_data_header(in, header);
      if (id == 7) read_dictionary_header(in, header);
      if (id == 8) read_data_header_v2(in, header);
    } else {
      return false;
    }
    return true;
  });
  if (kind < 0 || kind > 3) corrupt("a page has the unknown type " + std::to_string(kind));
  header.type = static_cast<PageType>(kind);
  if (header.type != PageType::Index && header.type != described)
    corrupt("a page header is not of its page's type");
  header.header_bytes = static_cast<int32_t>(in.position());
  if (header.stored_bytes > in.left()) corrupt("a page is longer than its column chunk");
  return header;
}

}  // namespace bireme::parquet
