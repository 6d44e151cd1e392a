#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/csv_manifest.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct CsvMaker {
  static constexpr std::uint64_t kRecords = 6;
  static constexpr bool kResident = false;

  CsvMaker() {
    std::string table = "\xEF\xBB\xBFid,path,label\r\n";
    for (std::size_t i = 0; i < kRecords; ++i) {
      folder_.write("images/" + name(i), encode_jpeg(make_picture(9, 10, 3, i)));
      table += fmt::format("{},\"images/{}\",{}\r\n", i, quoted(name(i)), i * 10);
    }
    folder_.write("table.csv", table);
  }
  static std::string name(std::size_t i) { return fmt::format("B\u00E4ume, \"gr\u00FCn\" {}.jpg", i); }
  static std::string quoted(const std::string& text) {
    std::string result;
    for (const char c : text) result.append(c == '"' ? 2 : 1, c);
    return result;
  }
  const TempFolder& folder() const { return folder_; }
  std::filesystem::path root() const { return folder_ / "table.csv"; }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (std::size_t i = 0; i < kRecords; ++i) files.push_back(folder_ / ("images/" + name(i)));
    return files;
  }
  SourcePtr open() const { return open_at(root()); }
  SourcePtr open_at(const std::filesystem::path& path) const { return csv_manifest(path); }
  void change() { folder_.write("images/" + name(2), "of another size"); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Csv, SourceSuite, CsvMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Csv, FileSourceSuite, CsvMaker);

std::int64_t label_of(const Source& source, std::uint64_t index) {
  std::vector<std::byte> scratch;
  std::int64_t label = -1;
  std::memcpy(&label, source.read(index, scratch).fields[1].data(), sizeof label);
  return label;
}

// A folder with the images a.jpg and b.jpg, and this table.
SourcePtr open_table(const TempFolder& folder, const std::string& table, CsvOptions options = {}) {
  folder.write("a.jpg", "aaa");
  folder.write("b.jpg", "bb");
  return csv_manifest(folder.write("t.csv", table), std::move(options));
}

std::string error_of(const std::string& table) {
  const TempFolder folder;
  try {
    open_table(folder, table);
  } catch (const DataError& error) {
    EXPECT_THAT(error.location().source, HasSubstr("t.csv"));
    return error.what();
  }
  return "no error";
}

TEST(CsvManifestTest, ReadsPathsAndIntegerLabels) {
  const CsvMaker maker;
  const SourcePtr source = maker.open();
  EXPECT_TRUE(source->info().classes.empty());
  for (std::uint64_t i = 0; i < CsvMaker::kRecords; ++i) {
    EXPECT_EQ(label_of(*source, i), static_cast<std::int64_t>(i * 10));
    EXPECT_EQ(source->describe(i), "images/" + CsvMaker::name(i));
  }
  EXPECT_EQ(open_source(maker.root(), Split::kTrain)->info().records, CsvMaker::kRecords);
}

TEST(CsvManifestTest, NumbersClassNames) {
  const TempFolder folder;
  const SourcePtr source = open_table(folder, "label,path\nzebra,a.jpg\n\nant,b.jpg\n\"zebra\",b.jpg");
  EXPECT_THAT(source->info().classes, ElementsAre("ant", "zebra"));
  EXPECT_EQ(label_of(*source, 0), 1);
  EXPECT_EQ(label_of(*source, 1), 0);
  EXPECT_EQ(label_of(*source, 2), 1);
  EXPECT_EQ(source->info().records, 3U);
}

TEST(CsvManifestTest, TakesOtherColumns) {
  const TempFolder folder;
  const SourcePtr source =
      open_table(folder, "file,label,class\na.jpg,x,-7\n", {.path_column = "file", .label_column = "class"});
  EXPECT_EQ(label_of(*source, 0), -7);
}

TEST(CsvManifestTest, SaysWhatIsWrongAndOnWhichLine) {
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of("path,lable\na.jpg,1\n"), HasSubstr("no column 'label'; its first line names path, lable"));
  EXPECT_THAT(error_of("path,label\n"), HasSubstr("names no image"));
  EXPECT_THAT(error_of("path,label\na.jpg,1\nb.jpg\n"),
              HasSubstr("line 3 has 1 fields where the first line has 2"));
  EXPECT_THAT(error_of("path,label\na.jpg,\n"), HasSubstr("line 2 has an empty label"));
  EXPECT_THAT(error_of("path,label\na.jpg,1\nb.jpg,two\n"), HasSubstr("line 3: the label 'two' is no integer"));
  EXPECT_THAT(error_of("path,label\na.jpg,1\nc.jpg,2\n"), HasSubstr("line 3: 'c.jpg' cannot be opened"));
  EXPECT_THAT(error_of("path,label\n\"a.jpg,1\nb.jpg,2\n"), HasSubstr("never closed"));
  EXPECT_THAT(error_of("path,label\n\"a\".jpg,1\n"), HasSubstr("goes on behind its quote"));
  EXPECT_THAT(error_of("path,label\na\"b.jpg,1\n"), HasSubstr("in the middle"));
  EXPECT_THAT(error_of("path,label\na.jpg,99999999999999999999\n"), HasSubstr("no error")) << "a class name";
}

TEST(CsvManifestTest, EveryTruncationIsAnErrorOrAShorterTable) {
  const TempFolder folder;
  const std::string table = "path,label\n\"a.jpg\",1\n\"b.jpg\",2\n\"a.jpg\",3\n";
  for (std::size_t size = 0; size < table.size(); ++size) {
    try {
      EXPECT_LE(open_table(folder, table.substr(0, size))->info().records, 3U);
    } catch (const DataError& error) {
      EXPECT_THAT(error.location().source, HasSubstr("t.csv"));
    }
  }
}

TEST(CsvManifestTest, IsRecognisedByItsFirstLine) {
  const TempFolder folder;
  EXPECT_TRUE(is_csv_manifest(folder.write("a", "path,label\n")));
  EXPECT_TRUE(is_csv_manifest(folder.write("b", "\"label\",x,\"path\"")));
  EXPECT_FALSE(is_csv_manifest(folder.write("c", "path;label\n")));
  EXPECT_FALSE(is_csv_manifest(folder.write("d", "")));
  EXPECT_FALSE(is_csv_manifest(folder.write("e", std::string("path,label\0", 11))));
}

}  // namespace
}  // namespace headrace::test
