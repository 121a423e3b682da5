// Casts of texts to numbers, truths, points in time and blobs.
//
// What is read, and how it is rounded, is written in plan/functions/conversion.py. A text that stands for no
// value is NULL in a safe cast; otherwise the reference says what is wrong with it, and it reads odd ones.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/calendar.hpp"
#include "kernels/expression/cast_text.hpp"
#include "kernels/expression/moments.hpp"
#include "kernels/expression/plain_text.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSecondsADay = 86'400;

// out[row] = read(text, out) for the rows that are valid; read tells how it went.
template <typename Out, typename Read>
void read_rows(Call& call, Read read) {
  Out* out = call.out_as<Out>();
  uint8_t* bad = nullptr;
  for (int64_t row = 0; row < call.rows; ++row) {
    out[row] = Out{};
    if (call.valid != nullptr && !call.valid[row]) continue;
    const Reading reading = read(call.args[0]->at<Str>(row).view(), out[row]);
    if (reading == Reading::Good) continue;
    if (reading == Reading::Odd || !call.node.safe) throw NeedsReference("cast of a text");
    if (bad == nullptr) {
      bad = call.arena.take_array<uint8_t>(call.rows);
      std::memset(bad, 0, static_cast<size_t>(call.rows));
    }
    out[row] = Out{};
    bad[row] = 1;
  }
  if (bad != nullptr) call.reject<ConversionFault>(bad);
}

template <typename Out>
void read_exact(Call& call) {
  const Type& type = call.node.type;
  int128 low = -call.node.bound;
  int128 high = call.node.bound;
  if (!is_decimal(type.kind)) {
    low = std::numeric_limits<Out>::min();
    high = std::numeric_limits<Out>::max();
  }
  read_rows<Out>(call, [&type, low, high](std::string_view text, Out& out) {
    int128 value = 0;
    const Reading reading = read_scaled(text, type.scale, low, high, value);
    out = static_cast<Out>(value);
    return reading;
  });
}

template <typename Out>
void read_float(Call& call) {
  read_rows<Out>(call, [](std::string_view text, Out& out) {
    double value = 0;
    const Reading reading = read_double(text, value);
    out = static_cast<Out>(value);
    return reading;
  });
}

bool is_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return word.size() == text.size() && std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
             return a == b || (a >= 'A' && a <= 'Z' && a + 32 == b);
           });
  });
}

void read_bool(Call& call) {
  read_rows<uint8_t>(call, [](std::string_view text, uint8_t& out) {
    out = is_word(text, {"true", "t", "yes", "y", "1"});
    if (out || is_word(text, {"false", "f", "no", "n", "0"})) return Reading::Good;
    return is_ascii(text) ? Reading::Wrong : Reading::Odd;
  });
}

void read_date(Call& call) {
  read_rows<int32_t>(call, [](std::string_view text, int32_t& out) {
    Moment moment;
    const Reading reading = read_moment(text, moment);
    out = static_cast<int32_t>(moment.days);
    return reading;
  });
}

// The count of a moment in ticks, rounded half away from zero; false outside of the years 1 to 9999, and of the
// range of nanoseconds.
bool count_of(const Moment& moment, const Type& type, int64_t& count) {
  constexpr int64_t kFirst = days_of(1, 1, 1) * kSecondsADay;
  constexpr int64_t kPast = (days_of(9999, 12, 31) + 1) * kSecondsADay;
  const int64_t tick = moments::nanoseconds_a_tick(type.unit);
  const int64_t kept = tick == 1 ? moment.nanoseconds : moment.nanoseconds / 1'000 * 1'000;
  const int64_t seconds = moment.days * kSecondsADay - (has_zone(type) ? moment.ahead : 0);
  const int128 exact = static_cast<int128>(seconds) * kSecond + kept;
  const int128 rounded = divide_rounded(exact, static_cast<int128>(tick));
  count = static_cast<int64_t>(rounded);
  if (tick == 1) return static_cast<int128>(count) == rounded;
  return rounded * tick >= static_cast<int128>(kFirst) * kSecond &&
         rounded * tick < static_cast<int128>(kPast) * kSecond;
}

void read_timestamp(Call& call) {
  const Type& type = call.node.type;
  read_rows<int64_t>(call, [&type](std::string_view text, int64_t& out) {
    Moment moment;
    const Reading reading = read_moment(text, moment);
    if (reading != Reading::Good) return reading;
    return count_of(moment, type, out) ? Reading::Good : Reading::Wrong;
  });
}

template <typename Out>
void read_time(Call& call) {
  const int64_t tick = moments::nanoseconds_a_tick(call.node.type.unit);
  read_rows<Out>(call, [tick](std::string_view text, Out& out) {
    int64_t nanoseconds = 0;
    const Reading reading = read_time_of_day(text, nanoseconds);
    out = static_cast<Out>(nanoseconds / tick);
    return reading;
  });
}

void read_blob(Call& call) {
  read_rows<Str>(call, [](std::string_view text, Str& out) {
    out = str_of(text);
    const bool plain = is_ascii(text) && find_bytes(text, "\\") == kNotFound;
    return plain ? Reading::Good : Reading::Odd;
  });
}

}  // namespace

bool resolve_from_text(Node& node) {
  const Kind to = node.type.kind;
  if (is_integer(to) || is_decimal(to)) {
    visit_number(node.physical, [&node]<typename Out>(Out) {
      if constexpr (!std::is_floating_point_v<Out>) node.kernel = read_exact<Out>;
    });
  } else if (is_float(to)) {
    node.kernel = to == Kind::Float64 ? read_float<double> : read_float<float>;
  } else if (to == Kind::Bool) {
    node.kernel = read_bool;
  } else if (to == Kind::Date32) {
    node.kernel = read_date;
  } else if (to == Kind::Timestamp) {
    node.kernel = read_timestamp;
  } else if (to == Kind::Time32 || to == Kind::Time64) {
    node.kernel = to == Kind::Time32 ? read_time<int32_t> : read_time<int64_t>;
  } else if (to == Kind::Binary) {
    node.kernel = read_blob;
  } else {
    return false;
  }
  node.costly = true;
  node.can_raise |= !node.safe;
  return true;
}

}  // namespace bireme
