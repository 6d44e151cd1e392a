#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/array_formats.h"
#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/data.h"

namespace headrace::test {
namespace {

struct IdxMaker {
  static constexpr std::uint64_t kRecords = 9;
  static constexpr bool kResident = true;

  IdxMaker() {
    folder_.write("train-images-idx3-ubyte", make_idx({9, 4, 5}));
    folder_.write("train-labels-idx1-ubyte", make_idx({9}));
  }
  std::filesystem::path root() const { return folder_.path(); }
  std::vector<std::filesystem::path> files() const {
    return {folder_ / "train-images-idx3-ubyte", folder_ / "train-labels-idx1-ubyte"};
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return idx_folder(path, Split::kTrain); }
  void change() { folder_.write("train-labels-idx1-ubyte", make_idx({9}, 1)); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Idx, SourceSuite, IdxMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Idx, FileSourceSuite, IdxMaker);

// Opening must fail with a place in the named file.
void expect_data_error(const TempFolder& folder, const std::string& file) {
  const DataError error = error_of<DataError>([&] { idx_folder(folder.path(), Split::kTrain); });
  EXPECT_NE(error.location().source.find(file), std::string::npos) << error.what();
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
}

TEST(IdxTest, ReadsPixelsAndLabels) {
  const SourcePtr source = IdxMaker().open();
  EXPECT_EQ(source->info().fields[0].shape, (Shape{4, 5, 1}));
  EXPECT_EQ(label_of(*source, 7), 7);
  std::vector<std::byte> scratch;
  EXPECT_EQ(source->read(2, scratch).fields[0][3], std::byte{43});
}

TEST(IdxTest, FindsEveryUsualName) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      TempFolder folder;
      const auto pack = [&](const Bytes& bytes) { return *ending == '\0' ? bytes : gzip(bytes); };
      folder.write(std::string("t10k-images") + joint + "idx3-ubyte" + ending, pack(make_idx({6, 2, 2})));
      folder.write(std::string("t10k-labels") + joint + "idx1-ubyte" + ending, pack(make_idx({6})));
      EXPECT_EQ(idx_folder(folder.path(), Split::kTest)->info().records, 6U) << joint << ending;
      EXPECT_THROW(idx_folder(folder.path(), Split::kTrain), DataError);
    }
  }
}

TEST(IdxTest, GzipAndPlainGiveTheSameFingerprint) {
  TempFolder folder;
  folder.write("train-images-idx3-ubyte.gz", gzip(make_idx({9, 4, 5})));
  folder.write("train-labels-idx1-ubyte.gz", gzip(make_idx({9})));
  EXPECT_EQ(idx_folder(folder.path(), Split::kTrain)->info().fingerprint, IdxMaker().open()->info().fingerprint);
}

TEST(IdxTest, EveryTruncationIsAnError) {
  for (const char* ending : {"", ".gz"}) {
    TempFolder folder;
    const auto pack = [&](const Bytes& bytes) { return *ending == '\0' ? bytes : gzip(bytes); };
    const std::string name = std::string("train-images-idx3-ubyte") + ending;
    folder.write("train-labels-idx1-ubyte", make_idx({3}));
    const auto path = folder.write(name, pack(make_idx({3, 4, 5})));
    EXPECT_EQ(idx_folder(folder.path(), Split::kTrain)->info().records, 3U);
    for (std::size_t size = std::filesystem::file_size(path); size-- > 0;) {
      std::filesystem::resize_file(path, size);
      expect_data_error(folder, name);
    }
  }
}

TEST(IdxTest, EveryFlippedBitOfAGzipFileIsFoundOrHarmless) {
  TempFolder folder;
  const Bytes whole = gzip(make_idx({3, 4, 5}));
  folder.write("train-labels-idx1-ubyte", make_idx({3}));
  const auto path = folder.write("train-images-idx3-ubyte.gz", whole);
  const std::uint64_t fingerprint = idx_folder(folder.path(), Split::kTrain)->info().fingerprint;
  std::size_t found = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    TempFolder::patch(path, bit / 8, whole[bit / 8] ^ static_cast<std::byte>(1U << bit % 8));
    try {
      EXPECT_EQ(idx_folder(folder.path(), Split::kTrain)->info().fingerprint, fingerprint) << "bit " << bit;
    } catch (const DataError&) {
      ++found;
    }
    TempFolder::patch(path, bit / 8, whole[bit / 8]);
  }
  EXPECT_GT(found, whole.size() * 6) << "only the header's time stamp and system may change unnoticed";
}

TEST(IdxTest, RefusesHeadersThatPromiseTooMuch) {
  TempFolder folder;
  folder.write("train-labels-idx1-ubyte", make_idx({3}));
  for (const std::size_t at : {4, 8, 12}) {
    Bytes huge = make_idx({3, 4, 5});
    std::fill_n(huge.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{0xFF});
    folder.write("train-images-idx3-ubyte", huge);
    expect_data_error(folder, "train-images-idx3-ubyte");
    std::filesystem::remove(folder / "train-images-idx3-ubyte");
    folder.write("train-images-idx3-ubyte.gz", gzip(huge));
    expect_data_error(folder, "train-images-idx3-ubyte.gz");
    std::filesystem::remove(folder / "train-images-idx3-ubyte.gz");
  }
}

TEST(IdxTest, RefusesOtherFilesAndLeftovers) {
  TempFolder folder;
  folder.write("train-labels-idx1-ubyte", make_idx({3}));
  Bytes leftover = make_idx({3, 4, 5}), floats = make_idx({3, 4, 5});
  leftover.push_back(std::byte{0});
  floats[2] = std::byte{0x0D};
  const Bytes unknown = make_idx_of(7, {3}, {1, 2, 3}), many = make_idx({1, 1, 1, 1, 1, 1, 1}),
              endless = make_idx({0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF});
  for (const Bytes& bytes : {leftover, floats, unknown, many, endless, to_bytes("<html>not found</html>")}) {
    folder.write("train-images-idx3-ubyte", bytes);
    expect_data_error(folder, "train-images-idx3-ubyte");
  }
}

TEST(IdxTest, RefusesLabelsThatDoNotMatchTheImages) {
  TempFolder folder;
  folder.write("train-images-idx3-ubyte", make_idx({3, 4, 5}));
  const Bytes floats = make_idx_of(0x0D, {3}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  for (const Bytes& labels : {make_idx({4}), make_idx({2}), make_idx({3, 1}), floats}) {
    folder.write("train-labels-idx1-ubyte", labels);
    expect_data_error(folder, "train-labels-idx1-ubyte");
  }
}

template <typename Value>
std::vector<Value> first_image(const Source& source) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = source.read(0, scratch).fields[0];
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(IdxTest, ReadsEveryType) {
  TempFolder folder;
  const auto open = [&](int type, std::initializer_list<int> bytes) {
    const auto images = folder.write("images", make_idx_of(type, {1, 1, 2}, bytes));
    return idx_files(images, folder.write("labels", make_idx({1})));
  };
  EXPECT_EQ(open(0x08, {1, 255})->info().fields[0].dtype, DType::kU8);
  EXPECT_EQ(first_image<std::int32_t>(*open(0x09, {1, 255})), (std::vector<std::int32_t>{1, -1}));
  EXPECT_EQ(first_image<std::int32_t>(*open(0x0B, {1, 0, 255, 254})), (std::vector<std::int32_t>{256, -2}));
  EXPECT_EQ(first_image<std::int32_t>(*open(0x0C, {0, 1, 0, 0, 255, 255, 255, 0})),
            (std::vector<std::int32_t>{65536, -256}));
  EXPECT_EQ(first_image<float>(*open(0x0D, {0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0})), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(first_image<float>(*open(0x0E, {0x3F, 0xF8, 0, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0})),
            (std::vector<float>{1.5F, -2.0F}));
}

TEST(IdxTest, ReadsEveryRankAndLabelsOfAnyIntegerType) {
  TempFolder folder;
  const auto shape_of = [&](const Bytes& images) {
    return idx_files(folder.write("images", images), folder.write("labels", make_idx({2})))
        ->info()
        .fields[0]
        .shape;
  };
  EXPECT_EQ(shape_of(make_idx({2})), Shape());
  EXPECT_EQ(shape_of(make_idx({2, 3})), (Shape{3}));
  EXPECT_EQ(shape_of(make_idx({2, 3, 4})), (Shape{3, 4, 1}));
  EXPECT_EQ(shape_of(make_idx({2, 3, 4, 3})), (Shape{3, 4, 3}));
  EXPECT_EQ(shape_of(make_idx({2, 3, 1, 2, 1, 2})), (Shape{3, 1, 2, 1, 2}));
  folder.write("train-images-idx2-float", make_idx_of(0x0D, {1, 1}, {0x3F, 0x80, 0, 0}));
  folder.write("train-labels-idx1-int", make_idx_of(0x0C, {1}, {0, 0, 1, 7}));
  const SourcePtr found = open_source(folder.path(), Split::kTrain);
  EXPECT_EQ(label_of(*found, 0), 263);
  EXPECT_EQ(first_image<float>(*found), std::vector<float>{1.0F});
}

TEST(IdxTest, ReadsMnist) {
  const auto folder = shared_data("mnist");
  if (!folder) GTEST_SKIP() << "no MNIST here: set HEADRACE_DATA";
  const SourcePtr train = idx_folder(*folder, Split::kTrain), test = idx_folder(*folder, Split::kTest);
  EXPECT_EQ(train->info().records, 60000U);
  EXPECT_EQ(test->info().records, 10000U);
  EXPECT_EQ(train->info().fields[0].shape, (Shape{28, 28, 1}));
  const std::int64_t first_train[] = {5, 0, 4, 1, 9}, first_test[] = {7, 2, 1, 0, 4};
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(label_of(*train, i), first_train[i]);
    EXPECT_EQ(label_of(*test, i), first_test[i]);
  }
}

std::string hash_of_pixels(const Source& source) {
  Sha256 hash;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < source.info().records; ++i) hash.update(source.read(i, scratch).fields[0]);
  return hash.finish_hex();
}

// The hashes are of the original files behind their 16 bytes of header.
TEST(IdxTest, GivesMnistsOwnPixels) {
  const auto folder = shared_data("mnist");
  if (!folder) GTEST_SKIP() << "no MNIST here: set HEADRACE_DATA";
  EXPECT_EQ(hash_of_pixels(*idx_folder(*folder, Split::kTrain)),
            "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757");
  EXPECT_EQ(hash_of_pixels(*idx_folder(*folder, Split::kTest)),
            "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161");
}

TEST(IdxTest, ReadsFashionMnist) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  EXPECT_EQ(open_source(folder, Split::kTrain)->info().records, 60000U);
  EXPECT_EQ(open_source(folder, Split::kTest)->info().records, 10000U);
}

}  // namespace
}  // namespace headrace::test
