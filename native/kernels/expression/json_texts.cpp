// Parts of texts in JSON, and what they are.
//
// Texts that are malformed, and paths that are none, are left to the reference backend, which says where.
#include <array>

#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/json.hpp"

namespace bireme {

namespace {

// The path of each row: one for all where it is a constant or is not given.
class Paths {
 public:
  explicit Paths(const Call& call) : call_(call), is_given_(call.args.size() > 1) {
    if (is_given_ && call.args[1]->constant) {
      read(0);
      is_given_ = false;
    }
  }

  const JsonPath& at(int64_t row) {
    if (is_given_) read(row);
    return path_;
  }

 private:
  void read(int64_t row) {
    if (!parse_json_path(text_at(call_, 1, row), path_)) leave_to_reference(call_);
  }

  const Call& call_;
  bool is_given_;
  JsonPath path_;
};

// Calls make(row, part), which says whether there is a value, for each row with a part; other rows are NULL.
template <typename Make>
void make_of_parts(Call& call, Make make) {
  Paths paths(call);
  auto* valid = call.arena.take_array<uint8_t>(call.rows);
  for (int64_t row = 0; row < call.rows; ++row) {
    valid[row] = 0;
    if (!is_live(call, row)) continue;
    std::string_view part;
    const JsonFound found = find_json(text_at(call, 0, row), paths.at(row), part);
    if (found == JsonFound::Malformed) leave_to_reference(call);
    valid[row] = found == JsonFound::Part && make(row, part);
  }
  call.valid = valid;
}

Str written(std::string_view part, TextWriter& writer) {
  char* out = writer.room(json_room(part));
  return writer.keep_until(write_json(part, out));
}

Str said(std::string_view quoted, TextWriter& writer) {
  if (is_plain_json_text(quoted)) return str_of(quoted.substr(1, quoted.size() - 2));
  char* out = writer.room(static_cast<int64_t>(quoted.size()));
  return writer.keep_until(write_json_text(quoted, out));
}

template <typename Make>
void make_part_texts(Call& call, Make make) {
  TextWriter writer(call);
  Str* out = call.out_as<Str>();
  make_of_parts(call, [&](int64_t row, std::string_view part) {
    out[row] = kNoText;
    return make(kind_of_json(part), part, writer, out[row]);
  });
  for (int64_t row = 0; row < call.rows; ++row) {
    if (call.valid[row] == 0) out[row] = kNoText;
  }
}

void extract_kernel(Call& call) {
  make_part_texts(call, [](JsonKind, std::string_view part, TextWriter& writer, Str& out) {
    out = written(part, writer);
    return true;
  });
}

void extract_string_kernel(Call& call) {
  make_part_texts(call, [](JsonKind kind, std::string_view part, TextWriter& writer, Str& out) {
    if (kind == JsonKind::Null) return false;
    out = kind == JsonKind::Text ? said(part, writer) : written(part, writer);
    return true;
  });
}

void value_kernel(Call& call) {
  make_part_texts(call, [](JsonKind kind, std::string_view part, TextWriter& writer, Str& out) {
    if (kind == JsonKind::Null || kind == JsonKind::Array || kind == JsonKind::Object) return false;
    out = written(part, writer);
    return true;
  });
}

bool is_64_bits(std::string_view digits) {
  const bool is_negative = digits[0] == '-';
  const std::string_view limit = is_negative ? "9223372036854775808" : "18446744073709551615";
  if (is_negative) digits.remove_prefix(1);
  return digits.size() != limit.size() ? digits.size() < limit.size() : digits <= limit;
}

std::string_view type_of(JsonKind kind, std::string_view part) {
  switch (kind) {
    case JsonKind::Null:
      return "NULL";
    case JsonKind::False:
    case JsonKind::True:
      return "BOOLEAN";
    case JsonKind::Whole:
      if (!is_64_bits(part)) return "DOUBLE";
      return part[0] == '-' ? "BIGINT" : "UBIGINT";
    case JsonKind::Real:
      return "DOUBLE";
    case JsonKind::Text:
      return "VARCHAR";
    case JsonKind::Array:
      return "ARRAY";
    case JsonKind::Object:
      return "OBJECT";
  }
  throw EngineBug("a value in JSON is of no known kind");
}

void type_kernel(Call& call) {
  make_part_texts(call, [](JsonKind kind, std::string_view part, TextWriter&, Str& out) {
    out = str_of(type_of(kind, part));
    return true;
  });
}

void array_length_kernel(Call& call) {
  auto* out = call.out_as<uint64_t>();
  std::fill_n(out, call.rows, uint64_t{0});
  make_of_parts(call, [&](int64_t row, std::string_view part) {
    if (kind_of_json(part) == JsonKind::Array) out[row] = static_cast<uint64_t>(elements_of_json(part));
    return true;
  });
}

void exists_kernel(Call& call) {
  Paths paths(call);
  make_values<uint8_t>(call, 0, [&](int64_t row) {
    std::string_view part;
    const JsonFound found = find_json(text_at(call, 0, row), paths.at(row), part);
    if (found == JsonFound::Malformed) leave_to_reference(call);
    return static_cast<uint8_t>(found == JsonFound::Part);
  });
}

void valid_kernel(Call& call) {
  const JsonPath whole;
  make_values<uint8_t>(call, 0, [&](int64_t row) {
    std::string_view part;
    return static_cast<uint8_t>(find_json(text_at(call, 0, row), whole, part) == JsonFound::Part);
  });
}

// The text itself, where it is well formed.
void checked_kernel(Call& call) {
  const JsonPath whole;
  make_texts(call, [&](int64_t row, TextWriter&) {
    const std::string_view text = text_at(call, 0, row);
    std::string_view part;
    if (find_json(text, whole, part) != JsonFound::Part) leave_to_reference(call);
    return str_of(text);
  });
}

template <Kernel kernel, Kind result, size_t most, bool can_fail = true>
void resolve(Node& node, std::span<const Node* const>) {
  bool fits = !node.args.empty() && node.args.size() <= most && node.type.kind == result;
  for (const Type& type : node.arg_types) fits = fits && type.kind == Kind::String;
  if (!fits) no_kernel(node);
  node.kernel = kernel;
  node.can_raise |= can_fail;
}

constexpr Function kFunctions[] = {
    {"json", resolve<extract_kernel, Kind::String, 1>},
    {"json_checked", resolve<checked_kernel, Kind::String, 1>},
    {"json_extract", resolve<extract_kernel, Kind::String, 2>},
    {"json_extract_string", resolve<extract_string_kernel, Kind::String, 2>},
    {"json_value", resolve<value_kernel, Kind::String, 2>},
    {"json_type", resolve<type_kernel, Kind::String, 2>},
    {"json_array_length", resolve<array_length_kernel, Kind::UInt64, 2>},
    {"json_exists", resolve<exists_kernel, Kind::Bool, 2>},
    {"json_valid", resolve<valid_kernel, Kind::Bool, 1, false>},
};

}  // namespace

std::span<const Function> json_functions() {
  return kFunctions;
}

}  // namespace bireme
