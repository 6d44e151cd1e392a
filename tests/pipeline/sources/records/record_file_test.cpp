#include "headrace/pipeline/sources/records/record_file.h"
#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"
#include "headrace/pipeline/sources/records/record_file_writer.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

struct RecordFileMaker {
  static constexpr std::uint64_t kRecords = kTrainImages;
  static constexpr bool kResident = false;

  RecordFileMaker() { write(make_image_files()); }
  void write(const std::map<std::string, Bytes>& files) const {
    convert_dataset(folder_.write("images.tar", pack_images(files).finish()), root());
  }
  std::filesystem::path root() const { return folder_ / "images.records"; }
  std::vector<std::filesystem::path> files() const { return {root()}; }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return record_file(path, Split::kTrain); }
  void change() {
    auto files = make_image_files();
    files["train/cat/2.jpg"].at(15) ^= std::byte{1};  // its density: another file, the same pixels
    write(files);
  }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(RecordFile, SourceSuite, RecordFileMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(RecordFile, FileSourceSuite, RecordFileMaker);

// Two splits of tiny records: an "image" of 2 raw bytes and a label.
constexpr std::uint64_t kTrain = 3, kTest = 2;

RecordFileHeader tiny_header() {
  return {.fields = {{.name = "image", .dtype = DType::kU8, .shape = {1, 2, 1}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}},
          .classes = {"a", "bc"},
          .splits = {{.split = Split::kTrain, .records = kTrain, .origin = 1},
                     {.split = Split::kTest, .records = kTest, .origin = 2}}};
}

Bytes tiny_record(std::uint64_t i) {
  Bytes bytes(10);
  bytes[0] = static_cast<std::byte>(0xC0 + i);
  bytes[1] = static_cast<std::byte>(i * i);
  bytes[2] = static_cast<std::byte>(i % 2);
  return bytes;
}

std::uint64_t write_tiny(const std::filesystem::path& path) {
  RecordFileWriter writer(std::make_unique<FileWriter>(path), tiny_header());
  for (std::uint64_t i = 0; i < kTrain + kTest; ++i) {
    const Bytes record = tiny_record(i);
    writer.append({.fields = {std::span(record).first(2), std::span(record).last(8)}}, i == 1 ? "one" : "", {});
  }
  return writer.finish();
}

struct Contents {
  std::vector<std::vector<Bytes>> records;
  std::vector<std::string> names;
  Fields fields;
  std::vector<std::string> classes;
  std::uint64_t fingerprint = 0;
  bool operator==(const Contents&) const = default;
};

Contents record_contents(const std::filesystem::path& path, Split split) {
  const SourcePtr source = record_file(path, split);
  Contents contents{.records = read_all(*source),
                    .names = {},
                    .fields = source->info().fields,
                    .classes = source->info().classes,
                    .fingerprint = source->info().fingerprint};
  for (std::uint64_t i = 0; i < source->info().records; ++i) contents.names.push_back(source->describe(i));
  return contents;
}

TEST(RecordFileTest, KeepsBothSplitsNamesAndClasses) {
  TempFolder folder;
  const std::filesystem::path path = folder / "tiny";
  const std::uint64_t bytes = write_tiny(path);
  EXPECT_EQ(bytes, std::filesystem::file_size(path));
  const Contents train = record_contents(path, Split::kTrain), test = record_contents(path, Split::kTest);
  ASSERT_EQ(train.records.size(), kTrain);
  ASSERT_EQ(test.records.size(), kTest);
  for (std::uint64_t i = 0; i < kTrain + kTest; ++i) {
    const Bytes whole = tiny_record(i);
    const auto& record = i < kTrain ? train.records[i] : test.records[i - kTrain];
    EXPECT_EQ(record[0], Bytes(whole.begin(), whole.begin() + 2));
    EXPECT_EQ(record[1], Bytes(whole.begin() + 2, whole.end()));
  }
  EXPECT_EQ(train.classes, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(train.fields, tiny_header().fields);
  EXPECT_EQ(train.names, (std::vector<std::string>{path.string() + "[0]", "one", path.string() + "[2]"}));
  EXPECT_NE(train.fingerprint, test.fingerprint);
}

// The format as FORMAT.md spells it: a change of these bytes needs another version number.
TEST(RecordFileTest, HasTheBytesOfVersionOne) {
  TempFolder folder;
  RecordFileWriter writer(std::make_unique<FileWriter>(folder / "one"),
                          {.fields = {{.name = "x", .dtype = DType::kI32, .shape = {1}}},
                           .classes = {"c"},
                           .splits = {{.split = Split::kTest, .records = 1, .origin = 7}}});
  const Bytes four = to_bytes("four");
  writer.append({.fields = {four}}, "n", {});
  writer.finish();

  ByteWriter header;
  header.raw(to_bytes("\x89HDRR\r\n\x1A")).u32(1).u32(4 + 5 + 3 + 8 + 4 + 5 + 4 + 17);
  header.u32(1).text("x").u8(1).u8(0).u8(1).u64(1);
  header.u32(1).text("c").u32(1).u8(1).u64(1).u64(7);
  header.u64(xxh3(header.bytes()));
  ByteWriter index;
  index.u64(header.bytes().size()).u64(xxh3(four)).u64(1).u64(4).raw(to_bytes("n"));
  ByteWriter footer;
  footer.u64(header.bytes().size() + 4).u64(index.bytes().size()).u64(xxh3(index.bytes())).u64(1);
  footer.u64(xxh3(footer.bytes()));
  ByteWriter file;
  file.raw(header.bytes()).raw(four).raw(index.bytes()).raw(footer.bytes()).raw(to_bytes("\x1A\n\rRRDH\x89"));
  EXPECT_EQ(read_whole_file(folder / "one"), to_bytes(file.bytes()));
  EXPECT_EQ(to_hex(xxh3(to_bytes("four"))), to_hex(xxh3("four")));
}

TEST(RecordFileTest, AFlippedBitAnywhereIsAnErrorOrChangesNothing) {
  TempFolder folder;
  const std::filesystem::path path = folder / "tiny";
  write_tiny(path);
  const Bytes whole = read_whole_file(path);
  const Contents train = record_contents(path, Split::kTrain), test = record_contents(path, Split::kTest);
  std::size_t refused = 0, wrong = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const std::byte flip : {std::byte{1}, std::byte{0x80}, std::byte{0xFF}}) {
      TempFolder::patch(path, at, whole[at] ^ flip);
      for (const Split split : {Split::kTrain, Split::kTest}) {
        try {
          wrong += record_contents(path, split) != (split == Split::kTrain ? train : test) ? 1 : 0;
        } catch (const DataError& error) {
          EXPECT_EQ(error.location().source, path.string());
          ++refused;
        }
      }
      TempFolder::patch(path, at, whole[at]);
    }
  }
  EXPECT_EQ(wrong, 0U);
  // A flipped byte of one split's records leaves the other split readable; everything else is refused for both.
  const std::size_t in_records = (kTrain + kTest) * 10;
  EXPECT_EQ(refused, 3 * (2 * (whole.size() - in_records) + in_records));
}

TEST(RecordFileTest, ADamagedRecordIsNamedWithItsOffsetAndLeavesTheOthers) {
  TempFolder folder;
  const std::filesystem::path path = folder / "tiny";
  write_tiny(path);
  const std::size_t first = tiny_header().encode().size();
  const SourcePtr source = record_file(path, Split::kTrain);  // damaged under the reader
  TempFolder::patch(path, first + 10, std::byte{0});
  std::vector<std::byte> scratch;
  EXPECT_NO_THROW(source->read(0, scratch));
  EXPECT_NO_THROW(source->read(2, scratch));
  const DataError error = error_of<DataError>([&] { source->read(1, scratch); });
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
  EXPECT_EQ(error.location().record, 1U);
  EXPECT_EQ(error.location().offset, first + 10);
  EXPECT_THAT(error.what(), HasSubstr("one"));
}

TEST(RecordFileTest, EveryTruncationIsACleanError) {
  TempFolder folder;
  const std::filesystem::path path = folder / "tiny";
  write_tiny(path);
  const Bytes whole = read_whole_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder.write("cut", std::span(whole).first(size));
    EXPECT_THROW(record_file(folder / "cut", Split::kTrain), DataError) << size;
    EXPECT_THROW(open_source(folder / "cut", Split::kTrain), DataError) << size;
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(record_file(folder.write("long", longer), Split::kTrain), DataError);
}

// A file whose checksums are right and whose index or header lies.
class LyingRecordFile : public ::testing::Test {
 protected:
  struct Entry {
    std::uint64_t offset, checksum;
    std::array<std::uint64_t, 2> field_bytes;
  };

  // Header, records, index and footer as the writer makes them; tests change the parts before they are joined.
  LyingRecordFile() {
    for (std::uint64_t i = 0; i < kTrain + kTest; ++i) {
      const Bytes record = tiny_record(i);
      entries_.push_back({.offset = first_ + records_.size(), .checksum = xxh3(record), .field_bytes = {2, 8}});
      records_.insert(records_.end(), record.begin(), record.end());
    }
  }

  std::string error() {
    RecordIndexBuilder index(/*has_jpeg_indexes=*/false);
    for (const Entry& entry : entries_) index.add(entry.offset, entry.checksum, entry.field_bytes, "n", 0);
    Bytes file = header_;
    file.insert(file.end(), records_.begin(), records_.end());
    const auto end = index.encode(index_offset_.value_or(file.size()));
    file.insert(file.end(), end.begin(), end.end());
    return message_of<DataError>([&] { read_all(*record_file(folder_.write("lie", file), Split::kTrain)); });
  }

  TempFolder folder_;
  Bytes header_ = tiny_header().encode();
  std::size_t first_ = header_.size();
  Bytes records_;
  std::vector<Entry> entries_;
  std::optional<std::uint64_t> index_offset_;
};

TEST_F(LyingRecordFile, IsReadWhereItDoesNotLie) { EXPECT_EQ(error(), ""); }

TEST_F(LyingRecordFile, AboutOffsets) {
  entries_[1].offset += 1;
  EXPECT_THAT(error(), HasSubstr("record 1 does not begin"));
}

TEST_F(LyingRecordFile, AboutLengths) {
  entries_[4].field_bytes[0] = ~std::uint64_t{0} - 2;
  EXPECT_THAT(error(), HasSubstr("record 4 reaches into the index"));
  entries_[4].field_bytes[0] = 3;
  entries_[4].field_bytes[1] = 7;
  EXPECT_THAT(error(), HasSubstr("3 bytes, not those of (1, 2, 1)"));
}

TEST_F(LyingRecordFile, AboutTheNumberOfRecords) {
  entries_.pop_back();
  EXPECT_THAT(error(), HasSubstr("number of records"));
  RecordFileHeader header = tiny_header();
  header.splits[0].records = ~std::uint64_t{0};
  header.splits[1].records = 5;
  header_ = header.encode();
  EXPECT_THAT(error(), HasSubstr("number of records"));
}

TEST_F(LyingRecordFile, AboutTheEndOfTheRecords) {
  records_.push_back(std::byte{0});
  EXPECT_THAT(error(), HasSubstr("between the last record and the index"));
  index_offset_ = 3;
  EXPECT_THAT(error(), HasSubstr("does not lie between"));
  index_offset_ = ~std::uint64_t{0};
  EXPECT_THAT(error(), HasSubstr("does not lie between"));
}

TEST_F(LyingRecordFile, AboutItsFields) {
  const auto with = [&](auto change) {
    RecordFileHeader header = tiny_header();
    change(header);
    header_ = header.encode();
    return error();
  };
  EXPECT_THAT(with([](auto& h) { h.fields.clear(); }), HasSubstr("0 fields"));
  EXPECT_THAT(with([](auto& h) { h.fields.resize(65, h.fields[0]); }), HasSubstr("65 fields"));
  EXPECT_THAT(with([](auto& h) { h.fields[0].dtype = static_cast<DType>(9); }), HasSubstr("element type 9"));
  EXPECT_THAT(with([](auto& h) { h.fields[0].shape = Shape{1, Shape::kDynamic, 1}; }), HasSubstr("extent of -1"));
  const std::int64_t huge = std::int64_t{1} << 31;
  EXPECT_THAT(with([&](auto& h) { h.fields[0].shape = Shape{huge, 1 << 20, 64}; }), HasSubstr("too large"));
  EXPECT_THAT(with([](auto& h) { h.splits.clear(); }), HasSubstr("0 splits"));
  EXPECT_THAT(with([](auto& h) { h.splits[1].split = Split::kTrain; }), HasSubstr("same split twice"));
}

TEST(RecordFileTest, RefusesAnotherVersionAndAMissingSplit) {
  TempFolder folder;
  write_tiny(folder / "tiny");
  TempFolder::patch(folder / "tiny", 8, std::byte{3});
  const DataError error = error_of<DataError>([&] { record_file(folder / "tiny", Split::kTrain); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("version 3"));
  RecordFileWriter writer(std::make_unique<FileWriter>(folder / "half"),
                          {.fields = {{.name = "x", .dtype = DType::kU8, .shape = {1}}},
                           .classes = {},
                           .splits = {{.split = Split::kTrain}}});
  writer.finish();
  EXPECT_EQ(record_file(folder / "half", Split::kTrain)->info().records, 0U);
  EXPECT_THAT(error_of<ConfigError>([&] { record_file(folder / "half", Split::kTest); }).what(),
              HasSubstr("holds no test split"));
}

bool is_mapped(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/maps");
  const std::string all(std::istreambuf_iterator<char>(maps), {});
  return all.find(path.string()) != std::string::npos;
}

// Its index is mapped, so that processes share it, and checked in more than one block.
TEST(RecordFileTest, ALargeIndexIsMapped) {
  constexpr std::uint64_t kRecords = 450'000, kNamed = 123'456;
  const TempFolder folder;
  const std::filesystem::path path = folder / "large.records";
  RecordFileHeader header = tiny_header();
  header.splits = {{.split = Split::kTest, .records = 1, .origin = 1},
                   {.split = Split::kTrain, .records = kRecords, .origin = 2}};
  RecordFileWriter writer(std::make_unique<FileWriter>(path), header);
  for (std::uint64_t i = 0; i <= kRecords; ++i) {
    const Bytes record = tiny_record(i);
    const std::string name = i % 1000 == 0 || i == kNamed + 1 ? "record " + std::to_string(i) : "";
    writer.append({.fields = {std::span(record).first(2), std::span(record).last(8)}}, name, {});
  }
  const std::uint64_t bytes = writer.finish();
  {
    const SourcePtr source = record_file(path, Split::kTrain);
    EXPECT_TRUE(is_mapped(path));
    EXPECT_EQ(source->info().records, kRecords);
    EXPECT_EQ(source->describe(kNamed), "record " + std::to_string(kNamed + 1));
    EXPECT_EQ(source->describe(999), "record 1000");
    EXPECT_EQ(source->describe(kNamed + 1), path.string() + "[" + std::to_string(kNamed + 1) + "]");
    std::vector<std::byte> scratch;
    for (const std::uint64_t i : {std::uint64_t{0}, std::uint64_t{4095}, std::uint64_t{4096}, kRecords - 1}) {
      const RecordView record = source->read(i, scratch);
      const Bytes expected = tiny_record(i + 1);
      EXPECT_TRUE(std::ranges::equal(record.fields[0], std::span(expected).first(2))) << i;
    }
  }
  EXPECT_FALSE(is_mapped(path));
  Bytes file = read_whole_file(path);
  file[static_cast<std::size_t>(bytes - 10'000'000)] ^= std::byte{1};
  EXPECT_THAT(message_of<DataError>([&] { record_file(folder.write("damaged.records", file), Split::kTrain); }),
              HasSubstr("the index does not agree with its checksum"));
}

TEST(RecordFileTest, WriterRefusesARecordOfAnotherSize) {
  TempFolder folder;
  {
    RecordFileWriter writer(std::make_unique<FileWriter>(folder / "a"), tiny_header());
    const Bytes bytes(8);
    EXPECT_THROW(writer.append({.fields = {std::span(bytes).first(3), bytes}}, "x", {}), DataError);
    EXPECT_THROW(writer.finish(), Error) << "fewer records than promised";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// JPEG, PNG and progressive JPEG in turn: the first has an index.
class StoredJpegIndexes : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kImages = 24;

  StoredJpegIndexes() {
    TarBuilder tar;
    for (std::uint64_t i = 0; i < kImages; ++i) {
      const auto picture = make_picture(90, 120 + static_cast<int>(i), 3, i);
      const Bytes image = i % 3 == 1 ? encode_png(picture) : encode_jpeg(picture, {.progressive = i % 3 == 2});
      tar.add(std::string(1, static_cast<char>('a' + i % 2)) + "/" + std::to_string(i) + ".jpg", image);
    }
    tar_ = folder_.write("images.tar", tar.finish());
    convert_dataset(tar_, folder_ / "images.records");
  }

  SourcePtr open(const char* name = "images.records") const { return record_file(folder_ / name, Split::kTrain); }
  // The batches of random crops, of two epochs.
  std::vector<BatchDigest> crops_of(const SourcePtr& source) const {
    return cpu_digests_of(Dataset::from(source)
                              .decode()
                              .shuffle({.seed = 5})
                              .map(random_resized_crop({.size = 24, .area = {.05F, .4F}}))
                              .batch({.global_batch = 6}),
                          {.epochs = 2});
  }

  TempFolder folder_;
  std::filesystem::path tar_;
};

TEST_F(StoredJpegIndexes, LieBesideTheirImages) {
  const SourcePtr source = open();
  std::vector<std::byte> scratch, of_index;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    const auto image = source->read(i, scratch).fields[0];
    JpegIndex index;
    const auto stored = source->jpeg_index(i, of_index);
    const bool is_baseline = image[0] == std::byte{0xFF} && source->describe(i).find("/") != std::string::npos &&
                             std::stoul(source->describe(i).substr(2)) % 3 == 0;
    ASSERT_EQ(!stored.empty(), is_baseline) << source->describe(i);
    if (stored.empty()) continue;
    ASSERT_TRUE(index.assign(stored));
    EXPECT_EQ(index.content(), JpegIndex::content_of(image));
  }
  EXPECT_TRUE(source->jpeg_index(kImages, of_index).empty());
}

TEST_F(StoredJpegIndexes, ChangeNoBits) {
  EXPECT_EQ(crops_of(open()), crops_of(open_source(tar_, Split::kTrain)));
}

TEST_F(StoredJpegIndexes, OfImagesThatAreEncodedAgainAreTheirOwn) {
  convert_dataset(tar_, folder_ / "small.records", {.max_side = 80});
  const SourcePtr source = open("small.records");
  std::vector<std::byte> scratch, of_index;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    JpegIndex index;
    ASSERT_TRUE(index.assign(source->jpeg_index(i, of_index)));
    EXPECT_EQ(index.content(), JpegIndex::content_of(source->read(i, scratch).fields[0]));
  }
}

// One that is damaged is not used, and a record is not bad because of it.
TEST_F(StoredJpegIndexes, ThatAreDamagedAreNotUsed) {
  const SourcePtr whole = open();
  const auto crops = crops_of(whole);
  std::vector<std::byte> of_index;
  Bytes file = to_bytes(text_of(folder_ / "images.records"));
  std::uint64_t damaged = 0;
  for (std::uint64_t i = 0; i < kImages; ++i) {
    const auto stored = whole->jpeg_index(i, of_index);
    if (stored.empty()) continue;
    const auto at = std::search(file.begin(), file.end(), stored.begin(), stored.end());
    ASSERT_NE(at, file.end());
    at[static_cast<std::ptrdiff_t>(i * 7 % stored.size())] ^= std::byte{4};
    ++damaged;
  }
  EXPECT_GT(damaged, 5U);
  folder_.write("damaged.records", file);
  const SourcePtr source = open("damaged.records");
  for (std::uint64_t i = 0; i < kImages; ++i) EXPECT_TRUE(source->jpeg_index(i, of_index).empty());
  EXPECT_EQ(source->info().fingerprint, whole->info().fingerprint);
  EXPECT_EQ(crops_of(source), crops);
}

// Files of version 1 are read as they were.
TEST_F(StoredJpegIndexes, AreNotInFilesOfVersion1) {
  const SourcePtr source = open();
  RecordFileHeader header{.fields = source->info().fields,
                          .classes = source->info().classes,
                          .splits = {{.split = Split::kTrain, .records = kImages, .origin = 1}}};
  EXPECT_EQ(header.version, 2U);
  header.version = 1;
  RecordFileWriter writer(std::make_unique<FileWriter>(folder_ / "old.records"), header);
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < kImages; ++i) writer.append(source->read(i, scratch), source->describe(i), {});
  writer.finish();
  const SourcePtr old = open("old.records");
  EXPECT_EQ(read_all(*old), read_all(*source));
  EXPECT_EQ(old->info().fingerprint, source->info().fingerprint);
  EXPECT_EQ(crops_of(old), crops_of(source));
  const Field without_extents{.name = "x", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage};
  EXPECT_EQ(RecordFileHeader::version_for({without_extents}), 2U);
  EXPECT_EQ(tiny_header().version, 1U) << "without encoded images nothing has changed";
}

}  // namespace
}  // namespace headrace::test
