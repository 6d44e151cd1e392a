#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Places = std::vector<std::pair<std::size_t, std::uint64_t>>;

// The turns taken literally.
Places naive_places(const std::vector<std::uint64_t>& sizes, std::uint64_t block) {
  Places places;
  std::vector<std::uint64_t> given(sizes.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      for (std::uint64_t i = 0; i < block && given[part] < sizes[part]; ++i)
        places.emplace_back(part, given[part]++);
      more = more || given[part] < sizes[part];
    }
  }
  return places;
}

TEST(Interleaving, EqualsTakingTurns) {
  const std::vector<std::vector<std::uint64_t>> cases{{},     {0},          {5},           {3, 3},
                                                      {7, 2}, {0, 4, 0, 9}, {10, 1, 5, 5}, {1, 2, 3, 4, 5, 6}};
  for (const auto& sizes : cases) {
    for (std::uint64_t block : {1, 2, 3, 5, 100}) {
      const Interleaving interleaving(sizes, block);
      const Places expected = naive_places(sizes, block);
      ASSERT_EQ(interleaving.size(), expected.size());
      for (std::uint64_t i = 0; i < expected.size(); ++i) {
        const Share share = interleaving.locate(i);
        ASSERT_EQ(std::pair(share.part, share.position), expected[i]) << "block " << block << ", position " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::test
