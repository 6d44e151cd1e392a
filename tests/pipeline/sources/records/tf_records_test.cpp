#include "headrace/pipeline/sources/records/tf_records.h"
#include "headrace/pipeline/sources/records/tf_example.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

Bytes image_of(std::size_t i) { return encode_jpeg(make_picture(8, 9, 3, i)); }

Bytes make_file(std::size_t first, std::size_t count, std::size_t extra = 0) {
  Bytes file;
  for (std::size_t i = first; i < first + count; ++i) {
    Bytes image = image_of(i);
    image.resize(image.size() + extra);
    const auto label = static_cast<std::int64_t>(i) - 2;
    append(file,
           frame(example({entry("image/format", bytes_feature(to_bytes("jpeg"))),
                          entry("image/class/label", i % 2 == 0 ? packed_feature(label) : unpacked_feature(label)),
                          entry("image/encoded", bytes_feature(image))})));
  }
  return file;
}

struct TfMaker {
  static constexpr std::uint64_t kRecords = 7;
  static constexpr bool kResident = false;

  TfMaker() {
    folder_.write("data/a.tfrecord", make_file(0, 3));
    folder_.write("data/b.tfrecord", make_file(3, 4));
  }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_ / "data"; }
  std::vector<std::filesystem::path> files() const {
    return {folder_ / "data/a.tfrecord", folder_ / "data/b.tfrecord"};
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return tf_records(path); }
  void change() { folder_.write("data/b.tfrecord", make_file(3, 4, 1)); }

 private:
  TempFolder folder_;
};

// Compressed as TensorFlow's writer does with compression_type="GZIP" and "ZLIB": in memory.
template <Bytes (*kPack)(std::span<const std::byte>)>
struct PackedTfMaker {
  static constexpr std::uint64_t kRecords = 7;
  static constexpr bool kResident = true;

  PackedTfMaker() { write(0); }
  std::filesystem::path root() const { return folder_ / "data"; }
  std::vector<std::filesystem::path> files() const {
    return {folder_ / "data/a.tfrecord", folder_ / "data/b.tfrecord.gz"};
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return tf_records(path); }
  void change() { write(1); }

 private:
  void write(std::size_t extra) {
    folder_.write("data/a.tfrecord", kPack(make_file(0, 3)));
    folder_.write("data/b.tfrecord.gz", kPack(make_file(3, 4, extra)));
  }

  TempFolder folder_;
};

using TfMakers = ::testing::Types<TfMaker, PackedTfMaker<&gzip>, PackedTfMaker<&zlib>, PackedTfMaker<&zstd>>;
INSTANTIATE_TYPED_TEST_SUITE_P(TfRecord, SourceSuite, TfMakers);
INSTANTIATE_TYPED_TEST_SUITE_P(TfRecord, FileSourceSuite, TfMakers);

std::int64_t label_feature(const RecordView& view) {
  std::int64_t label = -99;
  std::memcpy(&label, view.fields[1].data(), sizeof label);
  return label;
}

TEST(TfRecordsTest, ReadsImagesAndLabels) {
  const TfMaker maker;
  const SourcePtr source = maker.open();
  EXPECT_EQ(source->info().file_ends, (std::vector<std::uint64_t>{3, 7}));
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < 7; ++i) {
    const RecordView view = source->read(i, scratch);
    EXPECT_EQ(to_bytes(view.fields[0]), image_of(i));
    EXPECT_EQ(label_feature(view), static_cast<std::int64_t>(i) - 2);
  }
  EXPECT_EQ(source->describe(4), "b.tfrecord[1]");
  EXPECT_EQ(open_source(maker.root(), Split::kTrain)->info().records, 7U);
  EXPECT_EQ(open_source(maker.files()[1], Split::kTrain)->info().records, 4U);
  EXPECT_EQ(tf_records(maker.files())->info().records, 7U);
  EXPECT_THROW(open_source(maker.files()[1], Split::kTest), ConfigError);
}

TEST(TfRecordsTest, GivesTheSameRecordsHoweverTheyArePacked) {
  const auto plain = read_all(*TfMaker().open());
  const PackedTfMaker<&gzip> packed;
  EXPECT_EQ(read_all(*packed.open()), plain);
  EXPECT_EQ(read_all(*PackedTfMaker<&zlib>().open()), plain);
  const TempFolder folder;  // plain and compressed files side by side
  folder.write("a.tfrecord", make_file(0, 3));
  folder.write("b.tfrecord", zlib(make_file(3, 4)));
  const SourcePtr mixed = open_source(folder.path(), Split::kTrain);
  EXPECT_EQ(read_all(*mixed), plain);
  EXPECT_FALSE(mixed->info().resident);
  EXPECT_EQ(open_source(packed.files()[1], Split::kTrain)->info().records, 4U);
  const DataError error = error_of<DataError>([&] { tf_records(packed.root(), {.memory_limit = 500}); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.hint(), HasSubstr("unpack the files, which are read from the disk then"));
}

TEST(TfRecordsTest, EveryFlippedBitOfACompressedFileIsFoundOrHarmless) {
  const TempFolder folder;
  for (const Bytes& whole : {gzip(make_file(0, 1)), zlib(make_file(0, 1))}) {
    const auto path = folder.write("x", whole);
    const auto before = read_all(*tf_records(path));
    for (std::size_t bit = 0; bit < whole.size() * 8; bit += bit < 200 ? 1 : 37) {
      TempFolder::patch(path, bit / 8, whole[bit / 8] ^ static_cast<std::byte>(1U << bit % 8));
      try {
        EXPECT_EQ(read_all(*tf_records(path)), before) << bit;
      } catch (const DataError&) {
      }
      TempFolder::patch(path, bit / 8, whole[bit / 8]);
    }
  }
}

TEST(TfRecordsTest, AnExampleWithTwoImagesOrLabelsIsABadRecord) {
  const TempFolder folder;
  const Bytes image = entry("image", bytes_feature(image_of(0))), label = entry("label", packed_feature(1));
  Bytes file = frame(example({image, label}));
  append(file, frame(example({entry("image", bytes_feature({image_of(0), image_of(1)})), label})));
  append(file, frame(example({image, entry("label", packed_feature({1, 2, 3}))})));
  Bytes unpacked = unpacked_feature(1);
  append(unpacked, unpacked_feature(1));
  append(file, frame(example({image, entry("label", unpacked)})));
  for (const Bytes& packed : {file, gzip(file)}) {
    const SourcePtr source = tf_records(folder.write("x", packed));
    ASSERT_EQ(source->info().records, 4U);
    std::vector<std::byte> scratch;
    EXPECT_EQ(label_feature(source->read(0, scratch)), 1);
    const char* const words[] = {"feature 'image' holds 2 images, not one",
                                 "feature 'label' holds 3 labels, not one",
                                 "feature 'label' holds 2 labels, not one"};
    for (std::uint64_t i = 1; i < 4; ++i) {
      const DataError error = error_of<DataError>([&] { source->read(i, scratch); });
      EXPECT_EQ(error.location().record, i);
      EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
      EXPECT_THAT(error.what(), HasSubstr(words[i - 1]));
    }
  }
}

TEST(TfRecordsTest, IsOneStream) {
  const TfMaker maker;
  expect_one_stream(Dataset::from(maker.open()).shuffle().decode().map(center_crop(8)).batch({.global_batch = 2}));
}

TEST(TfRecordsTest, TakesOtherKeysInTheirOrder) {
  const TempFolder folder;
  const auto file = folder.write(
      "x", frame(example({entry("label", packed_feature(4)), entry("pixels", bytes_feature(image_of(1))),
                          entry("y", packed_feature(5)), entry("image", bytes_feature(image_of(2)))})));
  std::vector<std::byte> scratch;
  EXPECT_EQ(label_feature(tf_records(file)->read(0, scratch)), 4);
  const RecordView view =
      tf_records(file, {.image_keys = {"none", "pixels", "image"}, .label_keys = {"y", "label"}})
          ->read(0, scratch);
  EXPECT_EQ(label_feature(view), 5);
  EXPECT_EQ(to_bytes(view.fields[0]), image_of(1));
}

// What opening and reading all records says.
std::string error_of_tf_records(const Bytes& file) {
  const TempFolder folder;
  try {
    read_all(*tf_records(folder.write("x", file)));
  } catch (const DataError& error) {
    EXPECT_NE(error.location().offset, DataLocation::kUnknown);
    EXPECT_NE(error.location().record, DataLocation::kUnknown);
    return error.what();
  }
  return "";
}

TEST(TfRecordsTest, EveryTruncationIsAnError) {
  const Bytes whole = make_file(0, 2);
  const std::size_t one = make_file(0, 1).size();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == one) continue;
    ASSERT_NE(error_of_tf_records({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  }
}

TEST(TfRecordsTest, EveryFlippedBitIsAnError) {
  const Bytes whole = make_file(0, 1);
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += bit < 128 ? 1 : 37) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_NE(error_of_tf_records(bytes), "") << bit;
  }
}

TEST(TfRecordsTest, DoesNotBelieveALengthThatItsChecksumVouchesFor) {
  Bytes header;
  append_number(header, ~std::uint64_t{0} - 10, 8);
  append_number(header, mask_crc32c(crc32c(header)), 4);
  header.resize(header.size() + 100);
  EXPECT_THAT(error_of_tf_records(header), HasSubstr("where the file has"));
  EXPECT_THAT(error_of_tf_records(Bytes(100)), HasSubstr("is no TFRecord file"));
  EXPECT_THAT(error_of_tf_records(Bytes(100)), HasSubstr("Headrace reads: folders of images"));
  EXPECT_THAT(error_of_tf_records(gzip(Bytes(100))), HasSubstr("is no TFRecord file"));
}

TEST(TfRecordsTest, SaysWhatAnExampleLacks) {
  const Bytes image = entry("image", bytes_feature(image_of(0)));
  EXPECT_THAT(error_of_tf_records(frame(example({image}))),
              HasSubstr("no label under image/class/label or label; it has image"));
  EXPECT_THAT(error_of_tf_records(frame(example({entry("label", packed_feature(1))}))),
              HasSubstr("no image under"));
  EXPECT_THAT(error_of_tf_records(frame(example({image, entry("label", bytes_feature(to_bytes("1")))}))),
              HasSubstr("holds no integer"));
  EXPECT_THAT(
      error_of_tf_records(frame(example({entry("image", packed_feature(1)), entry("label", packed_feature(1))}))),
      HasSubstr("holds no bytes"));
  EXPECT_THAT(error_of_tf_records(frame({})), HasSubstr("it has nothing"));
}

// Records with a score to predict, a box, an identity, a depth image, and text.
Bytes make_rich_record(std::size_t i, std::initializer_list<float> box) {
  const auto number = static_cast<std::int64_t>(i);
  return frame(example(
      {entry("photo", bytes_feature(image_of(i))), entry("score", float_feature({0.5F + static_cast<float>(i)})),
       entry("box", float_feature(box, i % 2 == 0)), entry("id", packed_feature(number - 5)),
       entry("depth", bytes_feature(image_of(i + 50))), entry("text", bytes_feature(to_bytes("a cat")))}));
}

TEST(TfRecordsTest, TakesFeaturesByTheirKeysAndSaysWhatItLeavesOut) {
  for (const bool packed : {false, true}) {
    const TempFolder folder;
    Bytes file;
    for (std::size_t i = 0; i < 3; ++i) append(file, make_rich_record(i, {1, 2, 3, 4.5F}));
    append(file, make_rich_record(3, {1, 2, 3}));
    const auto path = folder.write("x.tfrecord", packed ? gzip(file) : file);
    const ColumnOptions columns{.image_column = "photo",
                                .label_column = "score",
                                .columns = {"box", "id"},
                                .label_type = LabelType::kNumber};
    const SourcePtr source = open_source(path, Split::kTrain, {.columns = columns});
    EXPECT_EQ(source->info().resident, packed);
    EXPECT_EQ(source->info().fields[1], (Field{.name = "label", .dtype = DType::kF32, .shape = {}}));
    EXPECT_EQ(source->info().fields[2], (Field{.name = "box", .dtype = DType::kF32, .shape = {4}}));
    EXPECT_EQ(source->info().fields[3], (Field{.name = "id", .dtype = DType::kI64, .shape = {}}));
    std::vector<std::byte> scratch;
    const RecordView view = source->read(1, scratch);
    EXPECT_EQ(to_bytes(view.fields[0]), image_of(1));
    float score = 0, box[4] = {};
    std::int64_t id = 0;
    std::memcpy(&score, view.fields[1].data(), sizeof score);
    std::memcpy(box, view.fields[2].data(), sizeof box);
    std::memcpy(&id, view.fields[3].data(), sizeof id);
    EXPECT_EQ(score, 1.5F);
    EXPECT_EQ(box[3], 4.5F);
    EXPECT_EQ(id, -4);
    EXPECT_EQ(describe(source->info().columns), "left out of each record: depth (an image), text (bytes)");
    const DataError error = error_of<DataError>([&] { source->read(3, scratch); });
    EXPECT_THAT(error.what(), HasSubstr("feature 'box' holds 3 numbers where the first record has 4"));
    EXPECT_EQ(error.location().record, 3U);
  }
}

TEST(TfRecordsTest, TakesASecondImageAndText) {
  const TempFolder folder;
  const auto path = folder.write("x.tfrecord", make_rich_record(0, {1}));
  const auto open_with = [&](TfRecordOptions options) {
    options.image_keys = {"photo"};
    return tf_records(path, std::move(options));
  };
  const SourcePtr source = open_with({.label_keys = {"id"}, .feature_keys = {"depth"}});
  EXPECT_EQ(source->info().fields[2].encoding, Encoding::kImage);
  std::vector<std::byte> scratch;
  EXPECT_EQ(to_bytes(source->read(0, scratch).fields[2]), image_of(50));
  const SourcePtr texts = open_with({.label_keys = {"id"}, .feature_keys = {"caption=text:text", "score"}});
  EXPECT_EQ(texts->info().fields[2], (Field{.name = "caption", .dtype = DType::kU8, .shape = {Shape::kDynamic}}));
  EXPECT_EQ(to_bytes(texts->read(0, scratch).fields[2]), to_bytes("a cat"));
  const auto error_with = [&](TfRecordOptions options) -> std::string {
    return message_of([&] { open_with(std::move(options)); });
  };
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"text"}}),
              HasSubstr("the feature 'text' is no number: it holds bytes (say 'text:text')"));
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"score:text"}}), HasSubstr("it holds 1 float"));
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"text:class"}}), HasSubstr("it holds bytes"));
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"score", "score"}}),
              HasSubstr("a field is called 'score' already"));
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"name"}}),
              HasSubstr("no feature 'name' in its first record; there are box, depth, id, photo, score, text"));
  EXPECT_THAT(error_with({.label_keys = {"id"}, .feature_keys = {"scroe"}}),
              HasSubstr("did you mean 'score'? (name one of these with ColumnOptions::columns)"));
  EXPECT_THAT(error_with({.label_keys = {"score"}}),
              HasSubstr("the label 'score' holds 1 float, and classes are integers (for values to predict, "
                        "as float32, say ColumnOptions::label_type = number"));
}

// Whatever a payload holds, it is an example or an error: lengths in it are never believed.
TEST(TfRecordsTest, ParsesOrRefusesAnyPayload) {
  const Bytes whole =
      example({entry("image", bytes_feature(to_bytes("pixels"))), entry("label", packed_feature(300))});
  const std::vector<TfField> fields = tf_fields({});
  std::vector<std::byte> numbers(number_bytes(fields));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(),
                    whole.begin() + static_cast<std::ptrdiff_t>(size));  // on its own, for sanitizers
    EXPECT_THROW(parse_tf_example(cut, fields, numbers), Error) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes bytes = whole;
      bytes[at] = static_cast<std::byte>(value);
      try {
        const std::span<const std::byte> image = parse_tf_example(bytes, fields, numbers).fields[0];
        EXPECT_GE(image.data(), bytes.data());
        EXPECT_LE(image.data() + image.size(), bytes.data() + bytes.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::test
