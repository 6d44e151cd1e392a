#include <fmt/format.h>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/tables/csv_manifest.h"
#include "headrace/tests/pipeline/sources/file_source_suite.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

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

// A folder with the images a.jpg and b.jpg, and this table.
SourcePtr open_table(const TempFolder& folder, const std::string& table, CsvOptions options = {}) {
  folder.write("a.jpg", "aaa");
  folder.write("b.jpg", "bb");
  return csv_manifest(folder.write("t.csv", table), std::move(options));
}

std::string error_of_table(const std::string& table) {
  const TempFolder folder;
  try {
    open_table(folder, table);
  } catch (const DataError& error) {
    EXPECT_THAT(error.location().source, HasSubstr("t.csv"));
    return error.what();
  }
  return "";
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
  EXPECT_THAT(error_of_table(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of_table("path,label\n"), HasSubstr("names no image"));
  EXPECT_THAT(error_of_table("path,label\na.jpg,1\nb.jpg\n"),
              HasSubstr("line 3 has 1 fields where the first line has 2"));
  EXPECT_THAT(error_of_table("path,label\na.jpg,\n"), HasSubstr("line 2 has an empty label"));
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    EXPECT_THAT(error_of_table("path,label" + end + end + "\"a.jpg\",1" + end + "b.jpg" + end),
                HasSubstr("line 4 has 1 fields"));
  }
  EXPECT_THAT(error_of_table("path,label\na.jpg,1\n\"b.jpg,2\na.jpg,1\n"),
              HasSubstr("line 3: a quoted field is never closed"));
  EXPECT_THAT(error_of_table("path,label\n\"a.jpg,1\nb.jpg,2\n"), HasSubstr("never closed"));
  EXPECT_THAT(error_of_table("path,label\n\"a\".jpg,1\n"), HasSubstr("goes on after its closing quote"));
  EXPECT_THAT(error_of_table("path,label\na\"b.jpg,1\n"), HasSubstr("in the middle"));
  EXPECT_THAT(
      error_of_table("path,label\na.jpg,99999999999999999999\n"),
      HasSubstr("t.csv: line 2: the label '99999999999999999999' is too large a number to be told from its "
                "neighbours (use integers below 2^63, or names)"));
}

// Labels of the rows; the paths are all a.jpg.
std::vector<std::int64_t> labels_of(const std::vector<std::string>& column,
                                    std::vector<std::string>* classes = nullptr,
                                    LabelType type = LabelType::kAuto) {
  const TempFolder folder;
  std::string table = "path,label\n";
  for (const std::string& label : column) table += "a.jpg," + label + "\n";
  const SourcePtr source = open_table(folder, table, {.label_type = type});
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < source->info().records; ++i) {
    labels.push_back(label_of(*source, i));
    EXPECT_EQ(source->label(i), labels.back());
  }
  if (classes != nullptr) *classes = source->info().classes;
  return labels;
}

TEST(CsvManifestTest, TakesIntegersHoweverTheyAreWritten) {
  using Labels = std::vector<std::int64_t>;
  EXPECT_EQ(labels_of({"0.0", "1", "02", "3e0", "+4", " 5 ", "\"6\"", "7.", "-8.00", "1e1"}),
            (Labels{0, 1, 2, 3, 4, 5, 6, 7, -8, 10}));
  EXPECT_EQ(labels_of({"0.0", "1.0", "2.0", "10.0"}), (Labels{0, 1, 2, 10})) << "as pandas writes them";
  EXPECT_EQ(labels_of({"9223372036854775807", "-9223372036854775808"}), (Labels{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(labels_of({"-0", "-0.0"}), (Labels{0, 0}));
  std::vector<std::string> classes;
  EXPECT_EQ(labels_of({"10.5", "2", ".5", "0.50", "2.0"}, &classes, LabelType::kClass), (Labels{2, 1, 0, 0, 1}));
  EXPECT_THAT(classes, ElementsAre(".5", "2", "10.5")) << "in numeric order";
  EXPECT_EQ(labels_of({"10", "2", "02"}, &classes, LabelType::kClass), (Labels{1, 0, 0}));
  EXPECT_THAT(classes, ElementsAre("2", "10"));
  EXPECT_EQ(labels_of({"nan", "inf", "0x1", "1e", "-"}, &classes), (Labels{4, 3, 1, 2, 0})) << "names";
  EXPECT_THAT(classes, ElementsAre("-", "0x1", "1e", "inf", "nan"));
}

// Returns the field's first element.
template <typename Value>
Value value_of_field(const Source& source, std::uint64_t record, std::size_t field) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = source.read(record, scratch).fields[field];
  Value value{};
  EXPECT_EQ(bytes.size() % sizeof value, 0U);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

// What may be a class a value or a number to predict is not guessed.
TEST(CsvManifestTest, AsksWhatNumbersThatAreNotWholeAre) {
  const TempFolder folder;
  const std::string table = "path,label\na.jpg,1\nb.jpg,0.25\na.jpg,-3e-1\n";
  EXPECT_THAT(
      error_of<ConfigError>([&] { open_table(folder, table); }).what(),
      HasSubstr("t.csv: the label column 'label' holds numbers that are not whole, the first "
                "in line 3: '0.25' (for values to predict, as float32, say ColumnOptions::label_type = number"));
  const SourcePtr numbers = open_table(folder, table, {.label_type = LabelType::kNumber});
  EXPECT_EQ(numbers->info().fields[1], (Field{.name = "label", .dtype = DType::kF32, .shape = {}}));
  EXPECT_TRUE(numbers->info().classes.empty());
  EXPECT_FALSE(numbers->label(0).has_value());
  EXPECT_EQ(value_of_field<float>(*numbers, 1, 1), 0.25F);
  EXPECT_EQ(value_of_field<float>(*numbers, 2, 1), -0.3F);
  EXPECT_NE(numbers->info().fingerprint,
            open_table(folder, table, {.label_type = LabelType::kClass})->info().fingerprint);
}

TEST(CsvManifestTest, TakesColumnsOfNumbersAlongAndSaysWhatItLeavesOut) {
  const TempFolder folder;
  const std::string table =
      "file,y,width,weight,caption\na.jpg,0.5,7,1,\"a, b\"\nb.jpg,1.5,-8,2.5,c\na.jpg,2.5,9,3,\n";
  const ColumnOptions columns{.image_column = "file",
                              .label_column = "y",
                              .columns = {"weight", "width"},
                              .label_type = LabelType::kNumber};
  open_table(folder, "path,label\na.jpg,1\n");
  const SourcePtr source = open_source(folder.write("t.csv", table), Split::kTrain, {.columns = columns});
  const Fields& fields = source->info().fields;
  ASSERT_EQ(fields.size(), 4U);
  EXPECT_EQ(fields[2], (Field{.name = "weight", .dtype = DType::kF32, .shape = {}}));
  EXPECT_EQ(fields[3], (Field{.name = "width", .dtype = DType::kI64, .shape = {}}));
  EXPECT_EQ(value_of_field<float>(*source, 1, 1), 1.5F);
  EXPECT_EQ(value_of_field<float>(*source, 1, 2), 2.5F);
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 1, 3), -8);
  EXPECT_THAT(source->info().columns,
              ElementsAre(SourceColumn{"file", "text", "image"}, SourceColumn{"y", "numbers", "label"},
                          SourceColumn{"width", "integers", "width"}, SourceColumn{"weight", "numbers", "weight"},
                          SourceColumn{"caption", "text", ""}));
  EXPECT_EQ(describe(source->info().columns), "left out of each record: caption (text)");
  const std::uint64_t before = source->info().fingerprint;
  folder.write("t.csv",
               "file,y,width,weight,caption\na.jpg,0.5,7,1,\"a, b\"\nb.jpg,1.5,-8,2.6,c\na.jpg,2.5,9,3,\n");
  EXPECT_NE(open_source(folder / "t.csv", Split::kTrain, {.columns = columns})->info().fingerprint, before);
}

TEST(CsvManifestTest, RefusesColumnsThatAreNoFields) {
  const TempFolder folder;
  const std::string table =
      "path,label,caption,width,image,twice,twice\na.jpg,1,cat,2,3,4,5\nb.jpg,2,dog,,3,4,5\n";
  const auto error_with = [&](std::vector<std::string> columns) -> std::string {
    return message_of<Error>([&] { open_table(folder, table, {.columns = std::move(columns)}); });
  };
  EXPECT_THAT(error_with({"caption"}),
              HasSubstr("t.csv: line 2: column 'caption' holds 'cat', which is no number"));
  EXPECT_THAT(error_with({"width"}), HasSubstr("line 3: column 'width' is empty"));
  EXPECT_THAT(error_with({"height"}),
              HasSubstr("t.csv: no column 'height' in its first line; there are path, label"));
  EXPECT_THAT(error_with({"widht"}),
              HasSubstr(": did you mean 'width'? (name one of these with ColumnOptions::columns)"));
  EXPECT_THAT(error_with({"twice"}), HasSubstr("more than one column 'twice'"));
  EXPECT_THAT(error_with({"label"}),
              HasSubstr("'label' cannot be taken along: a field is called 'label' already"));
  EXPECT_THAT(error_with({"y=label"}), HasSubstr("'label' cannot be taken along: it is taken already"));
  EXPECT_THAT(error_with({"image"}), HasSubstr("a field is called 'image' already"));
  EXPECT_THAT(error_with({"width:mask"}), HasSubstr("the column 'width' is no mask: it holds text"));
  EXPECT_THAT(error_of<ConfigError>([&] { csv_manifest(folder.write("t.csv", "path,lable\na.jpg,1\n")); }).what(),
              HasSubstr("no column 'label' in its first line; there are path, lable"));
  EXPECT_THROW(open_source(folder.write("x/a/1.jpg", "x").parent_path().parent_path(), Split::kTrain,
                           {.columns = {.label_column = "y"}}),
               ConfigError);
}

// The text of a row, without the zeros after it.
std::string text_of_field(const Source& source, std::uint64_t record, std::size_t field) {
  std::vector<std::byte> scratch;
  const RecordView view = source.read(record, scratch);
  const std::span<const std::byte> bytes = view.fields[field];
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

TEST(CsvManifestTest, TakesTextsClassesListsAndSeveralColumnsAsOne) {
  const TempFolder folder;
  const std::string table =
      "path,label,caption,breed,pixels,w,h,a:b\n"
      "a.jpg,1,\"a, b\",pug,1 2 3,4,5,7\nb.jpg,0,,collie,\"4,5;6\",6,7,8\n";
  const SourcePtr source = open_table(
      folder, table, {.columns = {"caption:text", "breed:class", "grey=pixels:list", "size=w+h", "a:b"}});
  const Fields& fields = source->info().fields;
  ASSERT_EQ(fields.size(), 7U);
  EXPECT_EQ(fields[2], (Field{.name = "caption", .dtype = DType::kU8, .shape = {4}}));
  EXPECT_EQ(fields[3], (Field{.name = "breed", .dtype = DType::kI64, .shape = {}}));
  EXPECT_EQ(fields[4], (Field{.name = "grey", .dtype = DType::kI64, .shape = {3}}));
  EXPECT_EQ(fields[5], (Field{.name = "size", .dtype = DType::kI64, .shape = {2}}));
  EXPECT_EQ(fields[6].name, "a:b");
  EXPECT_EQ(text_of_field(*source, 0, 2), "a, b");
  EXPECT_EQ(text_of_field(*source, 1, 2), "");
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 0, 3), 1) << "collie, pug";
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 1, 4), 4);
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 1, 5), 6);
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 1, 6), 8);
}

TEST(CsvManifestTest, RefusesChoicesThatMeanNothing) {
  const TempFolder folder;
  const std::string table = "path,label,caption,list,w\na.jpg,1,cat,1 2,3\nb.jpg,2,dog,1,4\n";
  const auto error_with = [&](const std::string& column) -> std::string {
    return message_of<Error>([&] { open_table(folder, table, {.columns = {column}}); });
  };
  EXPECT_THAT(error_with("caption:txt"), HasSubstr("'txt' is no type of one: did you mean 'text'?"));
  EXPECT_THAT(error_with("list:list"), HasSubstr("line 3: column 'list' has 1 number, the first row 2"));
  EXPECT_THAT(error_with("caption:list"), HasSubstr("column 'caption' holds 'cat', which is no number"));
  EXPECT_THAT(error_with("x=w+caption:text"), HasSubstr("makes one field of several columns, whose type is text"));
  EXPECT_THAT(error_with("x=w+w"), HasSubstr("'w' cannot be taken along: it is taken already"));
  EXPECT_THAT(error_with("label=w"), HasSubstr("a field is called 'label' already"));
  EXPECT_THAT(error_with("=w"), HasSubstr("has an empty name"));
  EXPECT_THAT(error_with("caption"), HasSubstr("for text say 'caption:text'"));
}

TEST(CsvTableTest, HasAsManyFieldsAsARecord) {
  const TempFolder folder;
  std::string names = "label", values = "1";
  for (std::size_t i = 1; i < kMaxFields; ++i) {
    names += fmt::format(",c{}", i);
    values += fmt::format(",{}", i);
  }
  const auto open = [&] { return csv_table(folder.write("wide.csv", names + "\n" + values + "\n")); };
  EXPECT_EQ(value_of_field<std::int64_t>(*open(), 0, kMaxFields - 1), kMaxFields - 1);
  names += ",more";
  values += ",0";
  EXPECT_THAT(error_of<ConfigError>([&] { open(); }).what(),
              HasSubstr("more than 64 fields, image and label included"));
  EXPECT_THROW(csv_table(folder / "wide.csv", {.path_column = "file"}), ConfigError);
}

TEST(CsvTableTest, NeedsNoImages) {
  const TempFolder folder;
  const auto path = folder.write("houses.csv", "rooms,town,price\n3,Ulm,1.5\n4,Bonn,2\n");
  const ColumnOptions columns{.label_column = "price", .label_type = LabelType::kNumber};
  const SourcePtr source = open_source(path, Split::kTrain, {.columns = columns});
  ASSERT_EQ(source->info().fields.size(), 2U);
  EXPECT_EQ(source->info().fields[0], (Field{.name = "label", .dtype = DType::kF32, .shape = {}}));
  EXPECT_EQ(value_of_field<float>(*source, 1, 0), 2.0F);
  EXPECT_EQ(value_of_field<std::int64_t>(*source, 0, 1), 3);
  EXPECT_EQ(describe(source->info().columns), "left out of each record: town (text)");
  const SourcePtr unlabelled = open_source(path, Split::kTrain, {.columns = {.columns = {"rooms", "town:class"}}});
  EXPECT_EQ(unlabelled->info().fields.size(), 2U);
  EXPECT_EQ(value_of_field<std::int64_t>(*unlabelled, 0, 1), 1) << "Bonn, Ulm";
  const Dataset data = Dataset::from(source).batch({.global_batch = 2});
  EXPECT_EQ(Dataset::from_json(data.to_json()).fingerprint(), data.fingerprint());
}

// Which of the two is meant?
TEST(CsvManifestTest, RefusesTwoColumnsOfOneNameWhereItTakesThem) {
  const TempFolder folder;
  const std::string rows = "a.jpg,1,2,5\nb.jpg,2,1,6\n";
  const ConfigError error = error_of<ConfigError>([&] { open_table(folder, "path,label,label,x\n" + rows, {}); });
  EXPECT_THAT(error.what(), HasSubstr("t.csv: more than one column 'label' in its first line"));
  EXPECT_NE(error.hint(), "");
  EXPECT_NO_THROW(open_table(folder, "path,label,x,x\n" + rows, {})) << "they are left out";
}

TEST(CsvManifestTest, RefusesNumbersAmongNamesWhereverTheyStand) {
  const std::string hint = " (use numbers or names throughout, or put every label in quotes where all are names)";
  for (const std::size_t odd : {0U, 1U, 4U}) {
    for (const bool name : {true, false}) {
      std::string table = "path,label\n";
      for (std::size_t row = 0; row < 5; ++row) {
        table += std::string("a.jpg,") + ((row == odd) == name ? "cat" : "1.0") + "\n";
      }
      const std::string expected =
          name ? fmt::format("line {}: the label 'cat' is a name, and '1.0' in line {} is a number", odd + 2,
                             odd == 0 ? 3 : 2)
               : fmt::format("line {}: the label '1.0' is a number, and 'cat' in line {} is a name", odd + 2,
                             odd == 0 ? 3 : 2);
      EXPECT_THAT(error_of_table(table), HasSubstr("t.csv: " + expected + hint));
    }
  }
  std::vector<std::string> classes;
  EXPECT_EQ(labels_of({"\"cat\"", "\"1\"", "\"10\""}, &classes), (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_THAT(classes, ElementsAre("1", "10", "cat")) << "all in quotes: names";
}

TEST(CsvManifestTest, AMissingFileIsABadRecord) {
  const TempFolder folder;
  const SourcePtr source = open_table(folder, "path,label\na.jpg,1\nc.jpg,2\nb.jpg,3\n.,4\n");
  ASSERT_EQ(source->info().records, 4U);
  EXPECT_EQ(label_of(*source, 2), 3);
  const auto error_at = [&](std::uint64_t index) -> std::string {
    std::vector<std::byte> scratch;
    try {
      source->read(index, scratch);
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().record, index);
      EXPECT_EQ(error.location().offset, source->offset(index)) << "of its row";
      return error.message().substr(error.message().find(": ") + 2);
    }
    return "";
  };
  EXPECT_EQ(error_at(0), "");
  EXPECT_EQ(error_at(1), "line 3: 'c.jpg' cannot be opened, record 1, byte offset 19");
  EXPECT_EQ(error_at(3), "line 5: '.' cannot be opened, record 3, byte offset 35");
  EXPECT_THAT(
      error_of_table("path,label\nc.jpg,1\nd.jpg,2\n"),
      HasSubstr("none of its 2 files can be opened; the first: line 2: 'c.jpg' cannot be opened (paths are "
                "relative to the folder of the table)"));
}

TEST(CsvManifestTest, EveryTruncationIsAnErrorOrAShorterTable) {
  const TempFolder folder;
  const std::string table = "path,label\n\"a.jpg\",1\n\"b.jpg\",2\n\"a.jpg\",3\n";
  for (std::size_t size = 0; size < table.size(); ++size) {
    try {
      EXPECT_LE(open_table(folder, table.substr(0, size))->info().records, 3U);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("t.csv"));
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
