// Records that a source itself knows to be bad: each policy deals with them as with any other.
#include <nlohmann/json.hpp>

#include "headrace/pipeline/inspect.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

// What is expected of record `record` of a source of ten.
struct BadSource {
  const char* about;
  SourcePtr source;
  std::uint64_t record;
  std::uint64_t offset;
  std::string operation, cause, path;
};

Bytes image(std::uint64_t seed) { return encode_jpeg(make_picture(9, 9, 3, seed)); }

BadSource csv_without_a_file(const TempFolder& folder) {
  std::string table = "path,label\n";
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (i != 4) folder.write(std::to_string(i) + ".jpg", image(i));
    table += std::to_string(i) + ".jpg,1\n";
  }
  const auto path = folder.write("t.csv", table);
  return {.about = "CSV",
          .source = open_source(path, Split::kTrain),
          .record = 4,
          .offset = 11 + 4 * 8,
          .operation = "source read",
          .cause = "line 6: '4.jpg' cannot be opened",
          .path = path.string()};
}

BadSource archive_without_a_class(const TempFolder& folder, bool packed) {
  TarBuilder tar;
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (i == 6) offset = tar.unfinished().size() + 512;
    tar.add(std::to_string(i) + ".jpg", image(i));
    if (i != 6) tar.add(std::to_string(i) + ".cls", to_bytes("3"));
  }
  const auto path = folder.write(packed ? "b.tar.gz" : "b.tar", packed ? gzip(tar.finish()) : tar.finish());
  return {.about = packed ? "packed WebDataset" : "WebDataset",
          .source = open_source(path, Split::kTrain),
          .record = 6,
          .offset = offset,
          .operation = "source read",
          .cause = "'6.jpg' has no label: no 6.cls",
          .path = path.string()};
}

BadSource digits_with_a_wrong_label(const TempFolder& folder) {
  const auto path = folder.write("train-images-idx3-ubyte", make_idx({10, 3, 3}));
  Bytes labels = make_idx({10});
  labels[8 + 7] = std::byte{200};
  folder.write("train-labels-idx1-ubyte", labels);
  return {.about = "IDX",
          .source = open_source(folder.path(), Split::kTrain, {.label_count = 10}),
          .record = 7,
          .offset = 16 + 7 * 9,
          .operation = "label check",
          .cause = "label 200 where there are 10 classes",
          .path = path.string()};
}

class BadSources : public testing::Test {
 protected:
  std::vector<BadSource> all() const {
    return {csv_without_a_file(csv_), archive_without_a_class(tar_, false), archive_without_a_class(tar_, true),
            digits_with_a_wrong_label(idx_)};
  }

  static Dataset pipeline(const SourcePtr& source) {
    const Dataset data = Dataset::from(source);
    const bool encoded = source->info().fields[0].encoding == Encoding::kImage;
    return (encoded ? data.decode().map(center_crop(8)) : data).batch({.global_batch = 4});
  }

  static LoaderOptions options(OnError on_error, const std::filesystem::path& quarantine = {}) {
    return {.seed = 3,
            .epochs = 2,
            .threads = 2,
            .errors = {.on_error = on_error, .max_bad_share = 1, .quarantine = quarantine}};
  }

  TempFolder csv_, tar_, idx_, out_;
};

TEST_F(BadSources, EndAStreamThatFails) {
  for (const BadSource& one : all()) {
    const DataError error =
        error_of<DataError>([&] { digests_of(pipeline(one.source), 1, options(OnError::kFail)); });
    EXPECT_EQ(error.location().record, one.record) << one.about;
    EXPECT_EQ(error.location().offset, one.offset) << one.about;
    EXPECT_THAT(error.what(), HasSubstr(one.cause)) << one.about;
  }
}

TEST_F(BadSources, AreSkippedOrReplacedOneByOne) {
  for (const BadSource& one : all()) {
    for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
      std::int64_t examples = 0;
      for (const BatchDigest& batch : digests_of(pipeline(one.source), 1, options(policy))) {
        examples += batch.examples;
      }
      EXPECT_EQ(examples, policy == OnError::kSkip ? 18 : 20) << one.about;
      EXPECT_EQ(digests_of(pipeline(one.source), 3, options(policy)),
                digests_of(pipeline(one.source), 1, options(policy)))
          << one.about;
    }
  }
}

TEST_F(BadSources, AreListedInTheQuarantine) {
  for (const BadSource& one : all()) {
    const auto path = out_ / (std::string(one.about) + ".jsonl");
    digests_of(pipeline(one.source), 1, options(OnError::kSkip, path));
    std::ifstream lines(path);
    std::string text, more;
    ASSERT_TRUE(std::getline(lines, text)) << one.about;
    EXPECT_FALSE(std::getline(lines, more)) << one.about << ": once, and no other record";
    const nlohmann::json line = nlohmann::json::parse(text);
    EXPECT_EQ(line.at("source"), one.path);
    EXPECT_EQ(line.at("record"), one.record);
    EXPECT_EQ(line.at("offset"), one.offset) << one.about;
    EXPECT_EQ(line.at("operation"), one.operation);
    EXPECT_EQ(line.at("cause"), one.cause);
  }
}

TEST_F(BadSources, AreWhatAnInspectionFinds) {
  for (const BadSource& one : all()) {
    const Inspection found = inspect_source(one.source);
    EXPECT_EQ(found.records, 10U);
    EXPECT_EQ(found.examined, 10U);
    ASSERT_EQ(found.bad, 1U) << one.about;
    ASSERT_EQ(found.first_bad.size(), 1U);
    EXPECT_EQ(found.first_bad[0].record, one.record);
    EXPECT_EQ(found.first_bad[0].offset, one.offset);
    EXPECT_EQ(found.first_bad[0].cause, one.cause);
  }
}

// An image cut short within a tar: the decoder does not know where it lies, the archive does.
TEST_F(BadSources, ABadImageOfATarHasItsOffset) {
  TarBuilder tar;
  Bytes cut = image(1);
  cut.resize(cut.size() / 2);
  tar.add("a/1.jpg", image(0));
  const std::uint64_t offset = tar.unfinished().size() + 512;
  const Bytes whole = tar.add("b/2.jpg", cut).finish();
  for (const bool packed : {false, true}) {
    const auto path = tar_.write("images", packed ? gzip(whole) : whole);
    const auto quarantine = out_ / (packed ? "packed" : "plain");
    LoaderOptions with = options(OnError::kSkip, quarantine);
    digests_of(pipeline(image_archive(path)), 1, with);
    const Bytes text = read_whole_file(quarantine);
    const nlohmann::json line = nlohmann::json::parse(reinterpret_cast<const char*>(text.data()),
                                                      reinterpret_cast<const char*>(text.data() + text.size()));
    EXPECT_EQ(line.at("name"), "b/2.jpg");
    EXPECT_EQ(line.at("offset"), offset);
    EXPECT_THAT(line.at("operation").get<std::string>(), HasSubstr("decode"));
  }
}

TEST(Inspect, CountsClassesAndSizes) {
  const TempFolder folder;
  for (int i = 0; i < 30; ++i) {
    folder.write((i < 10 ? "a/" : "b/") + std::to_string(i) + ".jpg",
                 encode_jpeg(make_picture(8 + i, 20, 3, static_cast<std::uint64_t>(i))));
  }
  const SourcePtr source = open_source(folder.path(), Split::kTrain);
  const Inspection all = inspect_source(source);
  EXPECT_EQ(all.height.min, 8);
  EXPECT_EQ(all.height.max, 37);
  EXPECT_EQ(all.width.min, 20);
  EXPECT_EQ(all.width.max, 20);
  EXPECT_EQ(all.labels, (std::map<std::int64_t, std::uint64_t>{{0, 10}, {1, 20}}));
  EXPECT_EQ(all.bad, 0U);
  const Inspection some = inspect_source(source, {.max_examined = 3});
  EXPECT_EQ(some.examined, 3U);
  EXPECT_EQ(some.labels, all.labels) << "known without reading";
  EXPECT_EQ(some.height.min, 8);
  EXPECT_LT(some.bytes, all.bytes);
}

TEST(Inspect, ListsTheFirstBadRecordsOnly) {
  const TempFolder folder;
  for (int i = 0; i < 30; ++i) folder.write((i < 10 ? "a/" : "b/") + std::to_string(100 + i) + ".jpg", "no image");
  const Inspection found = inspect_source(open_source(folder.path(), Split::kTrain), {.max_listed = 2});
  EXPECT_EQ(found.bad, 30U);
  ASSERT_EQ(found.first_bad.size(), 2U);
  EXPECT_EQ(found.first_bad[1].name, "a/101.jpg");
  EXPECT_EQ(found.height.max, 0);
}

}  // namespace
}  // namespace headrace::test
