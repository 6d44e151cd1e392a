#include "headrace/pipeline/sources/arrays/array_formats.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

constexpr std::size_t kPlane = 1024;

// Pixel i of channel c of record r is r + 16 c + i, so that a mix-up of planes shows.
Bytes make_records(std::size_t count, std::size_t label_bytes, std::size_t first = 0) {
  Bytes bytes;
  for (std::size_t record = first; record < first + count; ++record) {
    for (std::size_t i = 0; i < label_bytes; ++i) bytes.push_back(static_cast<std::byte>(record % 10 + i));
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t i = 0; i < kPlane; ++i) bytes.push_back(static_cast<std::byte>(record + 16 * channel + i));
    }
  }
  return bytes;
}

struct CifarMaker {
  static constexpr std::uint64_t kRecords = 10;
  static constexpr bool kResident = true;

  CifarMaker() {
    for (std::size_t i = 0; i < 5; ++i) folder_.write(name(i), make_records(2, 1, i * 2));
    folder_.write("test_batch.bin", make_records(3, 1));
  }
  static std::string name(std::size_t i) { return "data_batch_" + std::to_string(i + 1) + ".bin"; }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_.path(); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (std::size_t i = 0; i < 5; ++i) files.push_back(folder_ / name(i));
    return files;
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return cifar_binary(path, Split::kTrain); }
  void change() { folder_.write(name(4), make_records(2, 1, 1)); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cifar, SourceSuite, CifarMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Cifar, FileSourceSuite, CifarMaker);

std::int64_t label_in(const RecordView& view) {
  std::int64_t label = -1;
  std::memcpy(&label, view.fields[1].data(), sizeof(label));
  return label;
}

TEST(CifarBinaryTest, InterleavesThePlanes) {
  const SourcePtr source = CifarMaker().open();
  EXPECT_EQ(source->info().fields[0].shape, (Shape{32, 32, 3}));
  std::vector<std::byte> scratch;
  for (const std::size_t record : {0, 3, 9}) {
    const RecordView view = source->read(record, scratch);
    EXPECT_EQ(label_in(view), static_cast<std::int64_t>(record));
    for (std::size_t i = 0; i < kPlane; ++i) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        ASSERT_EQ(view.fields[0][i * 3 + channel], static_cast<std::byte>(record + 16 * channel + i));
      }
    }
  }
}

TEST(CifarBinaryTest, TakesFineLabelsOfCifar100) {
  TempFolder folder;
  folder.write("train.bin", make_records(4, 2));
  folder.write("test.bin", make_records(2, 2));
  const SourcePtr source = cifar_binary(folder.path(), Split::kTrain);
  EXPECT_EQ(source->info().records, 4U);
  std::vector<std::byte> scratch;
  EXPECT_EQ(label_in(source->read(3, scratch)), 4);
  EXPECT_EQ(source->read(3, scratch).fields[0][0], std::byte{3});
  EXPECT_EQ(cifar_binary(folder.path(), Split::kTest)->info().records, 2U);
}

TEST(CifarBinaryTest, ReadsClassNamesWhereTheyAre) {
  CifarMaker maker;
  EXPECT_TRUE(maker.open()->info().classes.empty());
  maker.folder().write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\r\ni\nj\n\n");
  const std::vector<std::string> classes = maker.open()->info().classes;
  ASSERT_EQ(classes.size(), 10U);
  EXPECT_EQ(classes[7], "h");
  EXPECT_EQ(classes[9], "j");
}

TEST(CifarBinaryTest, ReadsTheHundredFineClassNames) {
  TempFolder folder;
  folder.write("train.bin", make_records(4, 2));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "class " + std::to_string(i) + "\n";
  folder.write("fine_label_names.txt", names);
  const std::vector<std::string> classes = open_source(folder.path(), Split::kTrain)->info().classes;
  ASSERT_EQ(classes.size(), 100U);
  EXPECT_EQ(classes[42], "class 42");
}

TEST(CifarBinaryTest, EveryTruncationIsAnErrorWithItsOffset) {
  CifarMaker maker;
  const Bytes whole = make_records(2, 1);
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 97) {
    if (size == whole.size() / 2) continue;  // one whole record
    maker.folder().write(CifarMaker::name(2), std::span(whole).first(size));
    const DataError error = error_of<DataError>([&] { maker.open(); });
    EXPECT_EQ(error.location().offset, size / 3073 * 3073);
    EXPECT_NE(error.location().source.find("data_batch_3.bin"), std::string::npos);
  }
}

TEST(CifarBinaryTest, ALabelOutOfRangeIsABadRecord) {
  CifarMaker maker;
  Bytes bytes = make_records(2, 1);
  bytes[3073] = std::byte{10};
  maker.folder().write(CifarMaker::name(0), bytes);
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(maker.open()).batch({.global_batch = 2}), devices);
  const DataError error = error_of<DataError>([&] { loader.next(); });
  EXPECT_EQ(error.location().record, 1U);
  EXPECT_THAT(error.what(), HasSubstr("label 10 where there are 10 classes"));
}

TEST(CifarBinaryTest, NamesAMissingBatch) {
  CifarMaker maker;
  std::filesystem::remove(maker.folder() / CifarMaker::name(3));
  const DataError error = error_of<DataError>([&] { maker.open(); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error.what()).find("data_batch_4.bin"), std::string::npos);
}

}  // namespace
}  // namespace headrace::test
