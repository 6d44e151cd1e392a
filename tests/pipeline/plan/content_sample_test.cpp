#include <fcntl.h>
#include <sys/stat.h>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/content_sample.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

// Notes what is read of it.
class NotingSource final : public Source {
 public:
  explicit NotingSource(std::uint64_t records, std::optional<std::uint64_t> revision = 1) {
    info_.records = records;
    info_.revision = revision;
    info_.fingerprint = 7;
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
  const std::optional<std::uint64_t> plain = sample_content(NotingSource(200));
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
  const NotingSource source(200, /*revision=*/std::nullopt);
  EXPECT_EQ(sample_content(source), std::nullopt);
  EXPECT_TRUE(source.read_.empty());
}

TEST(ContentSample, LooksIntoFilesOfTheTimeZeroAndWhatHasNoIdentity) {
  EXPECT_TRUE(sample_content(NotingSource(200, /*revision=*/0)).has_value());
  NotingSource nameless(200, /*revision=*/std::nullopt);
  nameless.info_.anonymous = true;
  EXPECT_TRUE(sample_content(nameless).has_value());
  NotingSource forgotten(200, /*revision=*/std::nullopt);
  forgotten.info_.fingerprint = 0;
  EXPECT_TRUE(sample_content(forgotten).has_value());
}

// Two folders alike in names, sizes and times, as `touch -d @0` makes them, and one disk cache.
TEST(ContentSample, OneDiskCacheKeepsAlikeDataSetsApart) {
  const TempFolder folder;
  const auto stream = [&](const std::string& name, std::uint8_t value) {
    for (int i = 0; i < 6; ++i) {
      const std::string text = "P" + std::string(63, static_cast<char>(value + i));
      const auto path =
          folder.write(name + "/" + (i % 2 == 0 ? "a" : "b") + "/" + std::to_string(i) + ".jpg", text);
      std::filesystem::last_write_time(path, std::filesystem::file_time_type{});
    }
    std::vector<std::byte> scratch;
    const SourcePtr source = image_folder(folder / name, Split::kTrain);
    return std::pair(source->info().revision.value(), sample_content(*source));
  };
  const auto one = stream("one", 'A'), other = stream("other", 'N');
  EXPECT_EQ(one.first, other.first) << "the times tell nothing";
  EXPECT_NE(one.second, other.second);
}

// Images alike in names and sizes; another seed makes other pixels.
Dataset timeless_archive(const TempFolder& folder, const std::string& name, std::uint8_t seed) {
  TarBuilder tar;
  for (std::uint8_t i = 0; i < 6; ++i) {
    Picture picture = make_picture(6, 5, 3, 1);
    picture.samples[0] = static_cast<std::uint8_t>(seed + i);
    Bytes png = encode_png(picture);
    png.resize(1000);  // what follows the image's end is passed over
    tar.add(std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", png);
  }
  const auto path = folder.write(name, tar.finish());
  constexpr timespec kEpoch{};
  const timespec times[2] = {kEpoch, kEpoch};
  EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  return Dataset::from(image_archive(path)).decode({.height = 6, .width = 5});
}

// As reproducible builds, container layers and package stores leave their files: last changed at the time 0.
TEST(ContentSample, CachesKeepArchivesOfTheTimeZeroApart) {
  const TempFolder folder;
  const Dataset one = timeless_archive(folder, "one.tar", 10), other = timeless_archive(folder, "other.tar", 90);
  const auto digests = [](const Dataset& dataset) {
    return cpu_digests_of(dataset.batch({.global_batch = 3}), {.threads = 2});
  };
  EXPECT_EQ(std::filesystem::file_size(folder / "one.tar"), std::filesystem::file_size(folder / "other.tar"));
  ASSERT_NE(digests(one), digests(other));
  const auto cached = [&](const Dataset& dataset) { return dataset.cache(disk(folder / "cache")); };
  EXPECT_EQ(digests(cached(one)), digests(one));
  EXPECT_EQ(digests(cached(other)), digests(other)) << "given the other archive's samples";
  const auto shared = memory();
  EXPECT_EQ(digests(one.cache(shared)), digests(one));
  EXPECT_THROW(digests(other.cache(shared)), ConfigError) << "one memory cache, one stream";
  EXPECT_EQ(digests(one.cache(shared)), digests(one));
}

// A function whose maker gave no fingerprint is known by what it makes.
TEST(ContentSample, DiskCachesKeepFunctionsWithoutIdentityApart) {
  const TempFolder folder;
  const auto digests = [&](std::int64_t first) {
    const Dataset dataset =
        Dataset::from(generator({.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
                                 .records = 5,
                                 .function = [first](std::uint64_t index, RecordWriter& record) {
                                   record.put(0, first + static_cast<std::int64_t>(index));
                                 }}));
    return std::pair(cpu_digests_of(dataset.cache(disk(folder.path())).batch({.global_batch = 5}), {}),
                     cpu_digests_of(dataset.batch({.global_batch = 5}), {}));
  };
  for (const std::int64_t first : {0, 100, 0}) {
    const auto [cached, plain] = digests(first);
    EXPECT_EQ(cached, plain);
  }
}

// A source of a program's own, whose maker thought of no fingerprint.
class Forgetful final : public Source {
 public:
  explicit Forgetful(std::int64_t first) : first_(first) {
    info_.name = "mine";
    info_.records = 5;
    info_.fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}};
  }
  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    const std::int64_t value = first_ + static_cast<std::int64_t>(index);
    scratch.resize(sizeof value);
    std::memcpy(scratch.data(), &value, sizeof value);
    return {.fields = {std::span<const std::byte>(scratch)}};
  }
  std::string describe(std::uint64_t index) const override { return std::to_string(index); }

 private:
  std::int64_t first_;
  SourceInfo info_;
};

TEST(ContentSample, DiskCachesKeepSourcesWithoutFingerprintApart) {
  const TempFolder folder;
  for (const std::int64_t first : {0, 100, 0}) {
    const Dataset dataset = Dataset::from(std::make_shared<Forgetful>(first));
    EXPECT_EQ(cpu_digests_of(dataset.cache(disk(folder.path())).batch({.global_batch = 5}), {}),
              cpu_digests_of(dataset.batch({.global_batch = 5}), {}))
        << "given another source's samples";
  }
}

}  // namespace
}  // namespace headrace::test
