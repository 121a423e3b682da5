// Texts in JSON: whether they are well formed, and the parts that a path leads to.
//
// Rule: a text is looked at from end to end, so one that is malformed somewhere has no parts. As DuckDB's reader it takes a comma
// behind the last element, NaN and Infinity; of members with one key, the first counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bireme {

struct JsonStep {
  enum class Kind : uint8_t { Key, Index, Either };  // Either: a key of an object, an index of an array

  Kind kind = Kind::Key;
  std::string key;
  int64_t index = 0;  // negative: from the end; of Either below 0 where the key is no number
};

using JsonPath = std::vector<JsonStep>;

// "$.a[0]", "/a/0", or the name of a member. False where it is none of them, or stands for many parts.
bool parse_json_path(std::string_view text, JsonPath& path);

enum class JsonFound : uint8_t { Malformed, Missing, Part };

// The part of the text that the path leads to, as it stands there.
JsonFound find_json(std::string_view text, const JsonPath& path, std::string_view& part);

enum class JsonKind : uint8_t { Null, False, True, Whole, Real, Text, Array, Object };

// What a well-formed value is, by its first bytes.
JsonKind kind_of_json(std::string_view value);

int64_t elements_of_json(std::string_view array);

// Bytes that `write_json` or `write_json_text` of the value need at most.
int64_t json_room(std::string_view value);

// The value without spaces, with texts and reals in their shortest form. Returns where it ends.
char* write_json(std::string_view value, char* out);

// What a text in quotes says.
char* write_json_text(std::string_view quoted, char* out);

// What a text in quotes says, if it says it as it stands there.
bool is_plain_json_text(std::string_view quoted);

}  // namespace bireme
