// Texts that a kernel makes: they lie one after another in the arena.
#pragma once

#include <algorithm>
#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/expression/node.hpp"

namespace bireme {

inline constexpr Str kNoText = {"", 0, 0};

class TextWriter {
 public:
  explicit TextWriter(const Call& call) : call_(call) {}

  // Room for a text of up to `bytes` bytes.
  char* room(int64_t bytes) {
    if (bytes > left_) next_piece(bytes);
    return at_;
  }
  // What was written into the room.
  Str keep(int64_t bytes) {
    const Str made = {at_, static_cast<uint32_t>(bytes), 0};
    at_ += bytes;
    left_ -= bytes;
    return made;
  }
  Str keep_until(const char* end) { return keep(end - at_); }

 private:
  static constexpr int64_t kPieceBytes = 16 * 1024;

  void next_piece(int64_t bytes) {
    if (bytes > INT32_MAX) throw Overflow(call_.node.function + " makes a text of more than 2 GiB");
    left_ = std::max(bytes, kPieceBytes);
    at_ = call_.arena.take_array<char>(left_);
  }

  const Call& call_;
  char* at_ = nullptr;
  int64_t left_ = 0;
};

inline bool is_live(const Call& call, int64_t row) {
  return call.valid == nullptr || call.valid[row] != 0;
}

inline std::string_view text_at(const Call& call, size_t arg, int64_t row) {
  return call.args[arg]->at<Str>(row).view();
}

inline char* append(char* at, std::string_view text) {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// out[row] = make(row, writer) where no argument is NULL.
template <typename Make>
void make_texts(Call& call, Make make) {
  TextWriter writer(call);
  Str* out = call.out_as<Str>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = is_live(call, row) ? make(row, writer) : kNoText;
}

// The same for values of fixed width, which are `none` where an argument is NULL.
template <typename Out, typename Make>
void make_values(Call& call, Out none, Make make) {
  Out* out = call.out_as<Out>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = is_live(call, row) ? make(row) : none;
}

// A row for which the function fails: the reference backend, which runs the batch again, says how.
[[noreturn]] inline void leave_to_reference(const Call& call) {
  throw NeedsReference(call.node.function);
}

// A function of two texts.
inline void expect_two_texts(const Node& node, Kind result) {
  const bool fits = node.args.size() == 2 && node.arg_types[0].kind == Kind::String &&
                    node.arg_types[1].kind == Kind::String && node.type.kind == result;
  if (!fits) no_kernel(node);
}

inline bool are_constant(std::span<const Node* const> args) {
  return std::all_of(args.begin(), args.end(),
                     [](const Node* arg) { return arg->node_class == NodeClass::Literal; });
}

}  // namespace bireme
