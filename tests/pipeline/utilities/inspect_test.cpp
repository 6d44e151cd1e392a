#include "headrace/pipeline/inspect.h"
#include "headrace/tests/pipeline/fake_source.h"

namespace headrace::test {
namespace {

TEST(ReadLabel, TakesEightBytesAndNoOther) {
  std::vector<std::byte> scratch;
  EXPECT_EQ(read_label(FakeSource(5), 3, 0, scratch), 3);
  const FakeSource cut(std::vector<std::vector<std::byte>>{std::vector<std::byte>(7)});
  EXPECT_THROW(read_label(cut, 0, 0, scratch), DataError);
}

}  // namespace
}  // namespace headrace::test
