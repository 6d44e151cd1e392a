#include "headrace/pipeline/plan/order_notes.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

// Labels on a disk, `of_class` records of each class together or not, of some bytes each.
class PlacedLabels final : public Source {
 public:
  PlacedLabels(std::uint64_t bytes, bool sorted) : bytes_(bytes), sorted_(sorted) {
    info_.name = "placed";
    info_.records = 100'000;
    info_.fields = {{.name = "label", .dtype = DType::kI64, .shape = {}}};
  }
  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t /*index*/, std::vector<std::byte>& /*scratch*/) const override { return {}; }
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override {
    return static_cast<std::int64_t>(sorted_ ? index / 1000 : index % 100);
  }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return 512 + index * bytes_; }
  std::string describe(std::uint64_t /*index*/) const override { return "placed"; }

 private:
  SourceInfo info_;
  std::uint64_t bytes_;
  bool sorted_;
};

Dataset placed(std::uint64_t bytes, bool sorted) {
  return Dataset::from(std::make_shared<PlacedLabels>(bytes, sorted));
}

TEST(OrderNotes, SayWhatSmallRecordsCost) {
  EXPECT_THAT(placed(927, false).shuffle().explain(),
              HasSubstr("about 5.4 times the bytes it uses: records of 927"));
  EXPECT_THAT(placed(927, false).shuffle().explain(), HasSubstr("shuffle_blocks()"));
  for (const Dataset& plan :
       {placed(927, false), placed(927, false).shuffle_blocks(), placed(100'000, false).shuffle(),
        placed(927, false).cache(memory()).shuffle(), Dataset::from(numbers(100)).shuffle()}) {
    EXPECT_THAT(plan.explain(), Not(HasSubstr("times the bytes")));
  }
}

TEST(OrderNotes, SayThatClassesLieTogether) {
  EXPECT_THAT(placed(100'000, true).shuffle_window({.size = 4096}).explain(),
              HasSubstr("sorted by class: 4,096 records in a row have 6 of at least 100 classes"));
  for (const Dataset& plan :
       {placed(100'000, true), placed(100'000, true).shuffle(), placed(100'000, true).shuffle_blocks(),
        placed(100'000, true).shuffle_window({.size = 4096}).shuffle(),
        placed(100'000, false).shuffle_window({.size = 4096})}) {
    EXPECT_THAT(plan.explain(), Not(HasSubstr("sorted by class")));
  }
}

}  // namespace
}  // namespace headrace::test
