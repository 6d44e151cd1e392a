#include "headrace/pipeline/plan/content_sample.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

// Notes what is read of it.
class NotingSource final : public Source {
 public:
  explicit NotingSource(std::uint64_t records, std::uint64_t revision = 1) {
    info_.records = records;
    info_.revision = revision;
  }
  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    read_.insert(index);
    if (index == unreadable) throw DataError(ErrorCode::kIo, "cannot be read", {.source = "it"});
    scratch.resize(sizeof index);
    const std::uint64_t value = index == changed ? ~index : index;
    std::memcpy(scratch.data(), &value, sizeof value);
    return {.fields = {std::span<const std::byte>(scratch)}};
  }
  std::string describe(std::uint64_t) const override { return {}; }

  SourceInfo info_;
  std::uint64_t changed = ~std::uint64_t{0}, unreadable = ~std::uint64_t{0};
  mutable std::set<std::uint64_t> read_;
};

TEST(ContentSample, ReadsAllOfASmallSource) {
  for (const std::uint64_t records : {0U, 1U, 2U, 100U, 256U}) {
    const NotingSource source(records);
    sample_content(source);
    EXPECT_EQ(source.read_.size(), records);
  }
}

TEST(ContentSample, SpreadsOverALargeOneAndIntoEachFile) {
  const std::uint64_t records = (std::uint64_t{1} << 40) + 12'345;
  NotingSource source(records);
  source.info_.file_ends = {10, 10, 500'000, records};
  sample_content(source);
  for (const std::uint64_t wanted : {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{10}, std::uint64_t{499'999},
                                     std::uint64_t{500'000}, records - 1}) {
    EXPECT_TRUE(source.read_.contains(wanted)) << wanted;
  }
  std::uint64_t before = 0;
  for (const std::uint64_t one : source.read_) {
    EXPECT_LE(one - before, records / (kSampledRecords - 1) + 1);
    before = one;
  }
}

TEST(ContentSample, TellsASampledRecordsBytesAndWhatCannotBeRead) {
  const std::uint64_t plain = sample_content(NotingSource(200));
  EXPECT_EQ(sample_content(NotingSource(200)), plain);
  for (const std::uint64_t record : {0U, 77U, 199U}) {
    NotingSource other(200);
    other.changed = record;
    EXPECT_NE(sample_content(other), plain);
    NotingSource broken(200);
    broken.unreadable = record;
    EXPECT_NE(sample_content(broken), plain);
  }
}

TEST(ContentSample, LeavesAloneWhatIsInTheFingerprint) {
  const NotingSource source(200, /*revision=*/0);
  EXPECT_EQ(sample_content(source), 0U);
  EXPECT_TRUE(source.read_.empty());
}

// Two folders alike in names, sizes and times, as `touch -d @0` makes them, and one disk cache.
TEST(ContentSample, OneDiskCacheKeepsAlikeDataSetsApart) {
  const test::TempFolder folder;
  const auto stream = [&](const std::string& name, std::uint8_t value) {
    for (int i = 0; i < 6; ++i) {
      const std::string text = "P" + std::string(63, static_cast<char>(value + i));
      const auto path =
          folder.write(name + "/" + (i % 2 == 0 ? "a" : "b") + "/" + std::to_string(i) + ".jpg", text);
      std::filesystem::last_write_time(path, std::filesystem::file_time_type{});
    }
    std::vector<std::byte> scratch;
    const SourcePtr source = image_folder(folder / name, Split::kTrain);
    EXPECT_NE(source->info().revision, 0U);
    return std::pair(source->info().revision, sample_content(*source));
  };
  const auto one = stream("one", 'A'), other = stream("other", 'N');
  EXPECT_EQ(one.first, other.first) << "the times tell nothing";
  EXPECT_NE(one.second, other.second);
}

}  // namespace
}  // namespace headrace
