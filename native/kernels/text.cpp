#include "kernels/text.hpp"

#include "kernels/text_loops.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace bireme {

namespace {

// Chosen when the module is loaded: to ask with each search would take a good part of its time.
const TextLoops& loops = text_loops();

// For texts too short for a block, and where there are no blocks.
size_t find_plainly(std::string_view text, std::string_view needle, size_t from) {
  const size_t last = text.size() - needle.size();
  for (size_t at = from; at <= last; ++at) {
    const void* found = std::memchr(text.data() + at, needle[0], last - at + 1);
    if (found == nullptr) return kNotFound;
    at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    if (same_bytes(text.data() + at + 1, needle.data() + 1, needle.size() - 1)) return at;
  }
  return kNotFound;
}

#ifdef __SSE2__

constexpr size_t kBlock = 16;

// Compares the first and the last byte of the needle at 16 places at once, and the rest only where both
// agree. The last block is moved back to end with the text, so it may look at places twice, but never past
// the end.
size_t find_in_blocks(std::string_view text, std::string_view needle) {
  const __m128i first = _mm_set1_epi8(needle.front());
  const __m128i last = _mm_set1_epi8(needle.back());
  const size_t places = text.size() - needle.size() + 1;
  for (size_t at = 0; at < places; at += kBlock) {
    const size_t start = at + kBlock <= places ? at : places - kBlock;
    const char* block = text.data() + start;
    const __m128i heads = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block));
    const __m128i tails = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + needle.size() - 1));
    const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(heads, first), _mm_cmpeq_epi8(tails, last));
    auto candidates = static_cast<unsigned>(_mm_movemask_epi8(both));
    for (; candidates != 0; candidates &= candidates - 1) {
      const auto place = static_cast<size_t>(__builtin_ctz(candidates));
      if (same_bytes(block + place, needle.data(), needle.size())) return start + place;
    }
  }
  return kNotFound;
}

#endif

}  // namespace

size_t find_bytes(std::string_view text, std::string_view needle) {
  if (needle.empty()) return 0;
  if (needle.size() > text.size()) return kNotFound;
  if (text.size() - needle.size() + 1 >= TextLoops::kPlaces && loops.find != nullptr)
    return loops.find(text.data(), text.size(), needle.data(), needle.size());
#ifdef __SSE2__
  if (text.size() - needle.size() + 1 >= kBlock) return find_in_blocks(text, needle);
#endif
  return find_plainly(text, needle, 0);
}

}  // namespace bireme
