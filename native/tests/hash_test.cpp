// The hash against values published for XXH64, and its promises about equal keys.
#include "kernels/hash.hpp"

#include <limits>

#include "tests/check.hpp"

using namespace bireme;

int main() {
  CHECK(hash_bytes("") == 0xef46db3751d8e999);
  CHECK(hash_bytes("a") == 0xd24ec4f1a98c6e5b);
  CHECK(hash_bytes("abc") == 0x44bc2cf5ad770999);
  CHECK(hash_double(0.0) == hash_double(-0.0));
  CHECK(hash_double(std::numeric_limits<double>::quiet_NaN()) ==
        hash_double(-std::numeric_limits<double>::quiet_NaN()));
  CHECK(hash_int128(-5) == hash_word(static_cast<uint64_t>(-5)));
  CHECK(hash_int128(static_cast<int128>(1) << 64) != hash_int128(0));
  for (uint32_t partitions : {1u, 3u, 64u}) {
    CHECK(partition_of(std::numeric_limits<uint64_t>::max(), partitions) == partitions - 1);
    CHECK(partition_of(0, partitions) == 0);
  }
  return test::finish();
}
