#include "headrace/pipeline/arrow.h"
#include "headrace/tests/pipeline/sources/source_suite.h"
#include "headrace/tests/support/arrow_builder.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

using Texts = std::vector<std::string>;

SourcePtr table(std::vector<ArrowNode> batches, const ArrowOptions& options = {}) {
  ArrowArrayStream stream = stream_of(std::move(batches));
  return arrow_table(&stream, options);
}
SourcePtr table_of(std::vector<ArrowNode> columns, const ArrowOptions& options = {}) {
  return table({structs("", std::move(columns))}, options);
}

template <typename Value>
std::vector<Value> arrow_values(const Source& source, std::uint64_t record, std::size_t field = 0) {
  std::vector<std::byte> scratch;
  const auto bytes = source.read(record, scratch).fields[field];
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
template <typename Value>
std::vector<Value> all_of(const Source& source, std::size_t field = 0) {
  std::vector<Value> values;
  for (std::uint64_t i = 0; i < source.info().records; ++i) {
    for (const Value value : arrow_values<Value>(source, i, field)) values.push_back(value);
  }
  return values;
}

std::string picture(std::uint64_t seed) {
  const Bytes jpeg = encode_jpeg(make_picture(8, 9, 3, seed));
  return {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()};
}

// Eleven photographs with labels, in three batches.
struct ArrowMaker {
  static constexpr std::uint64_t kRecords = 11;
  static constexpr bool kResident = true;

  SourcePtr open() const {
    std::vector<ArrowNode> batches;
    for (const auto& [first, count] : {std::pair(0, 4), {4, 1}, {5, 6}}) {
      Texts files;
      std::vector<std::int64_t> labels;
      for (int i = first; i < first + count; ++i) {
        files.push_back(picture(static_cast<std::uint64_t>(i == 7 ? changed_ : i)));
        labels.push_back(i % 3);
      }
      batches.push_back(structs("", {texts("photo", "z", files), numbers("label", "l", labels)}));
    }
    return table(std::move(batches));
  }
  void change() { changed_ = 99; }

 private:
  int changed_ = 7;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Arrow, SourceSuite, ArrowMaker);

TEST(ArrowTable, TakesImagesOfEveryLayout) {
  for (const char* format : {"z", "Z", "vz"}) {
    const Texts files = {picture(1), picture(2)};
    const SourcePtr source = table_of({texts("file", format, files)});
    EXPECT_EQ(source->info().fields.front().encoding, Encoding::kImage);
    EXPECT_EQ(arrow_values<char>(*source, 1), std::vector<char>(files[1].begin(), files[1].end())) << format;
  }
}

TEST(ArrowTable, TakesMasks) {
  const std::vector<std::string> more{"mask:mask"};
  const Texts files = {picture(1), picture(2)};
  const SourcePtr source =
      table_of({texts("image", "z", files), texts("mask", "z", files)}, {.columns = {.columns = more}});
  EXPECT_EQ(source->info().fields[1].shape, (Shape{Shape::kDynamic, Shape::kDynamic, 1}));
  EXPECT_EQ(source->info().fields[1].encoding, Encoding::kImage);
  EXPECT_THAT(
      message_of<Error>([&] {
        table_of({texts("image", "z", files), texts("mask", "u", {"a", "b"})}, {.columns = {.columns = more}});
      }),
      HasSubstr("the column 'mask' is no mask: it holds text"));
}

TEST(ArrowTable, TakesTheImagesOfHuggingFace) {
  ArrowNode root = structs("", {structs("img", {texts("bytes", "z", {picture(1)}), texts("path", "u", {"1.jpg"})}),
                                numbers<std::int64_t>("label", "l", {1})});
  root.metadata =
      metadata("huggingface", R"({"info":{"features":{"label":{"_type":"ClassLabel","names":["cat","dog"]}}}})");
  const SourcePtr source = table({root});
  EXPECT_EQ(source->info().fields.front().name, "image");
  EXPECT_EQ(source->info().classes, (Texts{"cat", "dog"}));
  EXPECT_EQ(source->info().columns.front(), (SourceColumn{"img", "images", "image"}));
}

// An image by its bytes, one by its file, and what cannot be used: a relative path, no file, neither bytes nor
// path.
ArrowNode images_by_path(const std::string& folder) {
  const std::string file = folder + "/1.png";
  ArrowNode bytes =
      with_nulls(texts("bytes", "z", {picture(1), "", "", "", ""}), {true, false, false, false, false});
  ArrowNode paths = with_nulls(texts("path", "u", {"0.png", file, "1.png", folder + "/none.png", ""}),
                               {true, true, true, true, false});
  return structs("img", {std::move(bytes), std::move(paths)});
}

TEST(ArrowTable, ReadsImagesByTheirPath) {
  const TempFolder folder;
  folder.write("1.png", picture(2));
  const SourcePtr source =
      table_of({images_by_path(folder.path().string()), numbers<std::int64_t>("label", "l", {5, 6, 7, 8, 9})});
  EXPECT_FALSE(source->info().resident);
  const std::string first = picture(1), second = picture(2);
  std::vector<std::byte> scratch;
  for (int pass = 0; pass < 2; ++pass) {
    const RecordView view = source->read(1, scratch);
    EXPECT_EQ(to_bytes(view.fields[0]), to_bytes(second));
    EXPECT_EQ(view.fields[1].size(), sizeof(std::int64_t));
    EXPECT_EQ(to_bytes(source->read(0, scratch).fields[0]), to_bytes(first));
  }
  EXPECT_TRUE(source->peek(1).empty());
  for (const auto& [record, words] :
       {std::pair(2, "its path '1.png' is relative"), std::pair(3, "none.png"), std::pair(4, "is null")}) {
    EXPECT_THAT(message_of<Error>([&] { source->read(static_cast<std::uint64_t>(record), scratch); }),
                HasSubstr(words));
  }
  folder.write("1.png", picture(2) + "more");
  EXPECT_THAT(message_of<Error>([&] { source->read(1, scratch); }), HasSubstr("when the table was opened"));
}

TEST(ArrowTable, RefusesImagesByPathThatAreAllMissing) {
  ArrowNode bytes = with_nulls(texts("bytes", "z", {"", ""}), {false, false});
  const ArrowNode images = structs("img", {std::move(bytes), texts("path", "u", {"a/1.png", "a/2.png"})});
  EXPECT_THAT(message_of<Error>([&] { table_of({images}); }), HasSubstr("'a/1.png' is relative"));
}

TEST(ArrowTable, ConvertsNumbersAsNumPysArrays) {
  const SourcePtr source =
      table_of({numbers<std::uint8_t>("a", "C", {200, 1}), numbers<std::int8_t>("b", "c", {-1, 1}),
                numbers<std::uint16_t>("c", "S", {65535, 1}), numbers<std::uint32_t>("d", "I", {4'000'000'000, 1}),
                numbers<double>("e", "g", {0.5, 1}), numbers<float>("f", "f", {1.5, 1}),
                numbers<std::int32_t>("g", "tdD", {19'000, 1}), numbers<std::int64_t>("h", "tsu:UTC", {7, 1}),
                booleans("i", {true, false}), numbers<std::uint16_t>("j", "e", {0x3c00, 0})});
  std::vector<DType> types;
  for (const Field& field : source->info().fields) types.push_back(field.dtype);
  EXPECT_THAT(types, ElementsAre(DType::kU8, DType::kI32, DType::kI32, DType::kI64, DType::kF32, DType::kF32,
                                 DType::kI32, DType::kI64, DType::kU8, DType::kF16));
  EXPECT_THAT(all_of<std::uint8_t>(*source, 0), ElementsAre(200, 1));
  EXPECT_THAT(all_of<std::int32_t>(*source, 1), ElementsAre(-1, 1));
  EXPECT_THAT(all_of<std::int32_t>(*source, 2), ElementsAre(65535, 1));
  EXPECT_THAT(all_of<std::int64_t>(*source, 3), ElementsAre(4'000'000'000, 1));
  EXPECT_THAT(all_of<float>(*source, 4), ElementsAre(0.5F, 1.0F));
  EXPECT_THAT(all_of<float>(*source, 5), ElementsAre(1.5F, 1.0F));
  EXPECT_THAT(all_of<std::int32_t>(*source, 6), ElementsAre(19'000, 1));
  EXPECT_THAT(all_of<std::int64_t>(*source, 7), ElementsAre(7, 1));
  EXPECT_THAT(all_of<std::uint8_t>(*source, 8), ElementsAre(1, 0));
}

TEST(ArrowTable, SlicesTheTablesOwnMemory) {
  auto live = std::make_shared<int>(0);
  ArrowArrayStream stream = stream_of({structs("", {numbers<float>("x", "f", {1, 2, 3, 4})})}, live);
  SourcePtr source = arrow_table(&stream);
  EXPECT_EQ(stream.release, nullptr) << "it was moved from";
  EXPECT_EQ(*live, 2) << "the batch and its column are kept";
  std::vector<std::byte> scratch;
  EXPECT_EQ(source->read(1, scratch).fields[0].data(), source->columns().front().data + 4);
  source.reset();
  EXPECT_EQ(*live, 0);
}

TEST(ArrowTable, ReadsSlicedArraysAtEveryLevel) {
  const std::vector<std::int32_t> numbers12 = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  ArrowNode pairs = sliced(fixed_lists("pair", 2, sliced(numbers("item", "i", numbers12), 2, 10)), 1, 4);
  ArrowNode names = sliced(texts("name", "u", {"z", "a", "b", "c", "d", "e"}), 1, 5);
  ArrowNode inner = sliced(structs("in", {numbers<std::int32_t>("x", "i", {90, 91, 92, 93, 94, 95})}), 2, 4);
  ArrowNode root = structs("", {pairs, inner, booleans("flag", {true, false, true, true})});
  root = sliced(root, 1, 3);
  const SourcePtr source = table({root}, {.columns = {.columns = {"pair", "in.x", "flag"}}});
  EXPECT_THAT(arrow_values<std::int32_t>(*source, 0, 0), ElementsAre(6, 7));
  EXPECT_THAT(all_of<std::int32_t>(*source, 1), ElementsAre(93, 94, 95));
  EXPECT_THAT(all_of<std::uint8_t>(*source, 2), ElementsAre(0, 1, 1));
}

TEST(ArrowTable, GivesListsOfEqualLengthAShape) {
  const std::vector<std::int32_t> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  const SourcePtr source =
      table_of({lists("m", {2, 2}, lists("item", {2, 2, 2, 2}, numbers("item", "i", eight), true))});
  EXPECT_EQ(source->info().fields[0].shape, (Shape{2, 2}));
  EXPECT_THAT(arrow_values<std::int32_t>(*source, 1), ElementsAre(4, 5, 6, 7));
  ASSERT_EQ(source->columns().size(), 1U) << "equal slices back to back";

  ArrowNode tensors = fixed_lists("t", 4, numbers("item", "i", eight));
  tensors.metadata = metadata("ARROW:extension:name", "arrow.fixed_shape_tensor");
  EXPECT_THROW(table_of({tensors}), DataError) << "no shape";
}

TEST(ArrowTable, LetsTheFirstExtentOfListsVary) {
  const SourcePtr source = table_of({lists("x", {1, 3, 0}, numbers<float>("item", "f", {1, 2, 3, 4})),
                                     lists("y", {2, 0, 1}, numbers<double>("item", "g", {5, 6, 7}))});
  EXPECT_EQ(source->info().fields[0].shape, Shape{Shape::kDynamic});
  EXPECT_THAT(arrow_values<float>(*source, 1), ElementsAre(2, 3, 4));
  EXPECT_TRUE(arrow_values<float>(*source, 2).empty());
  EXPECT_THAT(arrow_values<float>(*source, 2, 1), ElementsAre(7)) << "converted";
}

TEST(ArrowTable, NumbersNamesInBytewiseOrderAcrossBatches) {
  const auto batch = [](const std::vector<std::int32_t>& indices, const Texts& values) {
    return structs("", {dictionary("label", indices, texts("", "vu", values))});
  };
  const SourcePtr source = table({batch({1, 0}, {"cat", "a much longer name"}), batch({0, 1, 0}, {"dog", "cat"})});
  EXPECT_EQ(source->info().classes, (Texts{"a much longer name", "cat", "dog"}));
  EXPECT_THAT(all_of<std::int64_t>(*source), ElementsAre(0, 1, 2, 1, 2));
  EXPECT_EQ(source->label(3), 1);
}

TEST(ArrowTable, NumbersGivenNamesInTheirOrder) {
  const ArrowOptions options{.classes = {"dog", "cat", "bird"}};
  EXPECT_THAT(all_of<std::int64_t>(*table_of({texts("label", "u", {"cat", "dog"})}, options)), ElementsAre(1, 0));
  EXPECT_THAT(message_of<Error>([&] { table_of({texts("label", "u", {"cow"})}, options); }),
              HasSubstr("holds 'cow'"));
}

TEST(ArrowTable, ReadsLabelsAsTheirTypeSays) {
  const std::vector<ArrowNode> columns = {numbers<std::int16_t>("label", "s", {30, 10, 30})};
  EXPECT_THAT(all_of<std::int64_t>(*table_of(columns)), ElementsAre(30, 10, 30));
  const SourcePtr classes = table_of(columns, {.columns = {.label_type = LabelType::kClass}});
  EXPECT_THAT(all_of<std::int64_t>(*classes), ElementsAre(1, 0, 1));
  EXPECT_EQ(classes->info().classes, (Texts{"10", "30"}));
  EXPECT_THAT(all_of<float>(*table_of(columns, {.columns = {.label_type = LabelType::kNumber}})),
              ElementsAre(30, 10, 30));
  EXPECT_THAT(all_of<float>(*table_of({numbers<double>("label", "g", {0.5})})), ElementsAre(0.5F));
}

TEST(ArrowTable, TakesFurtherColumnsAsTheyAreChosen) {
  const std::vector<ArrowNode> columns = {numbers<std::int32_t>("w", "i", {1, 2}),
                                          numbers<double>("h", "g", {0.5, 1.5}),
                                          texts("caption", "u", {"ab", "abcd"}), texts("breed", "U", {"b", "a"}),
                                          numbers<std::int64_t>("label", "l", {5, 6})};
  const SourcePtr source =
      table_of(columns, {.columns = {.columns = {"size=w+h", "caption:text", "kind=breed:class"}}});
  Texts names;
  for (const Field& field : source->info().fields) names.push_back(field.name);
  EXPECT_EQ(names, (Texts{"label", "size", "caption", "kind"}));
  EXPECT_THAT(arrow_values<float>(*source, 1, 1), ElementsAre(2, 1.5F));
  EXPECT_THAT(arrow_values<char>(*source, 0, 2), ElementsAre('a', 'b', '\0', '\0'));
  EXPECT_THAT(all_of<std::int64_t>(*source, 3), ElementsAre(1, 0));
  EXPECT_EQ(source->info().columns[2], (SourceColumn{"caption", "text", "caption"}));
}

TEST(ArrowTable, ANullMakesItsRecordBad) {
  const SourcePtr source = table_of({with_nulls(numbers<float>("x", "f", {1, 2, 3}), {true, false, true}),
                                     fixed_lists("y", 2,
                                                 with_nulls(numbers<double>("item", "g", {1, 2, 3, 4, 5, 6}),
                                                            {true, true, true, true, true, false}))});
  std::vector<std::byte> scratch;
  EXPECT_NO_THROW(source->read(0, scratch));
  EXPECT_THAT(message_of<Error>([&] { source->read(1, scratch); }), HasSubstr("column 'x' is null"));
  EXPECT_THAT(message_of<Error>([&] { source->read(2, scratch); }),
              HasSubstr("column 'y' is null, or has a null in it"));
  EXPECT_TRUE(source->columns().empty());
  EXPECT_THAT(all_of<float>(*table_of({numbers<float>("x", "f", {1, 2})})), ElementsAre(1, 2));
}

TEST(ArrowTable, WhatContradictsItselfIsABadRecord) {
  ArrowNode backwards = texts("file", "z", {picture(1), picture(2), picture(3)});
  std::int32_t offset = 5;
  std::memcpy(backwards.buffers[0].data() + 8, &offset, sizeof offset);
  const SourcePtr source = table_of({backwards});
  std::vector<std::byte> scratch;
  EXPECT_THAT(message_of<Error>([&] { source->read(1, scratch); }), HasSubstr("offsets that decrease"));

  ArrowNode beyond = dictionary("label", {0, 7}, texts("", "u", {"a"}));
  const SourcePtr indexed = table_of({beyond});
  EXPECT_EQ(indexed->label(0), 0);
  EXPECT_EQ(indexed->label(1), std::nullopt);
  EXPECT_THAT(message_of<Error>([&] { indexed->read(1, scratch); }), HasSubstr("beyond its dictionary"));

  ArrowNode far = lists("x", {1, 9}, numbers<float>("item", "f", {1, 2}));
  EXPECT_THAT(message_of<Error>([&] { table_of({far})->read(1, scratch); }), HasSubstr("beyond their values"));
  ArrowNode uneven = lists("x", {2, 2}, lists("item", {1, 1, 2, 1}, numbers<float>("item", "f", {1, 2, 3, 4, 5})));
  EXPECT_THAT(message_of<Error>([&] { table_of({uneven})->read(1, scratch); }),
              HasSubstr("where others have (2, 1)"));
}

TEST(ArrowTable, IsTheSameHoweverItIsCutAndLaidOut) {
  const auto whole = table_of({numbers<float>("x", "f", {1, 2, 3}), texts("label", "u", {"a", "b", "a"})});
  const auto cut = table({structs("", {numbers<float>("x", "f", {1}), texts("label", "vu", {"a"})}),
                          structs("", {numbers<float>("x", "f", {2, 3}), texts("label", "vu", {"b", "a"})})});
  EXPECT_EQ(whole->info().fingerprint, cut->info().fingerprint);
  EXPECT_EQ(read_all(*whole), read_all(*cut));
}

TEST(ArrowTable, SaysWhatThereIs) {
  const std::vector<ArrowNode> columns = {numbers<float>("width", "f", {1}), texts("caption", "u", {"x"})};
  const auto with = [&](std::vector<std::string> more) {
    return message_of<Error>([&] { table_of(columns, {.columns = {.columns = std::move(more)}}); });
  };
  EXPECT_THAT(with({"widht"}), HasSubstr("there are width, caption: did you mean 'width'?"));
  EXPECT_THAT(with({"caption"}), HasSubstr("say 'caption:text'"));
  EXPECT_THAT(with({"width:text"}), HasSubstr("the column 'width' is no text: it holds float32 (say 'width'"));
  EXPECT_THAT(with({"width", "width"}), HasSubstr("a field is called 'width' already"));
  EXPECT_THAT(message_of<Error>([&] { table_of({texts("caption", "u", {"x"})}); }),
              HasSubstr("no column of images, no label"));
  EXPECT_THAT(message_of<Error>(
                  [&] { table_of({numbers<std::int64_t>("d", "d:9,2", {1})}, {.columns = {.columns = {"d"}}}); }),
              HasSubstr("Arrow format 'd:9,2'"));
  EXPECT_THAT(message_of<Error>([&] {
                table_of({texts("a", "z", {picture(1)}), texts("b", "z", {picture(1)})});
              }),
              HasSubstr("2 columns of images: a, b"));
  EXPECT_THAT(message_of<Error>([&] {
                table_of({numbers<double>("x", "g", {1, 2, 3})}, {.memory_limit = 8});
              }),
              HasSubstr("more than the 8 bytes"));
}

// What a column holds is not decided by its first value.
TEST(ArrowTable, LooksBeyondTheFirstImage) {
  const std::string webp("RIFF\x10\0\0\0WEBPVP8 ", 16);
  for (const std::string& first : {webp, std::string(), std::string("<html>404")}) {
    const Texts files = {first, picture(1), picture(2)};
    for (const auto& column :
         {texts("photo", "z", files),
          structs("photo", {texts("bytes", "z", files), ArrowNode{.format = "n", .name = "path", .length = 3}})}) {
      const SourcePtr source = table_of({column, numbers<std::int64_t>("label", "l", {0, 1, 2})});
      ASSERT_EQ(source->info().fields.front().name, "image");
      std::vector<std::byte> scratch;
      EXPECT_EQ(source->read(1, scratch).fields[0].size(), picture(1).size());
    }
  }
  const auto open = [&](const ArrowOptions& options) {
    return table_of({texts("photo", "z", {webp, ""}), numbers<float>("x", "f", {1, 2})}, options);
  };
  EXPECT_THAT(message_of<Error>([&] { open({}); }),
              HasSubstr("the column 'photo' holds images in WebP, which is not read"));
  EXPECT_EQ(describe(open({.columns = {.columns = {"x"}}})->info().columns),
            "left out of each record: photo (WebP images)");
  const Texts sounds = {std::string("RIFF\x10\0\0\0WAVEfmt ", 16), "x"};
  const SourcePtr audio =
      table_of({structs("audio", {texts("bytes", "z", sounds), texts("path", "u", {"a", "b"})}),
                numbers<float>("x", "f", {1, 2})});
  EXPECT_EQ(audio->info().fields.front().name, "x") << "no images";
}

TEST(ArrowTable, PassesOnWhatTheStreamReports) {
  auto live = std::make_shared<int>(0);
  ArrowArrayStream stream = stream_of({structs("", {numbers<float>("x", "f", {1})})}, live, "the disk is gone");
  EXPECT_THAT(message_of<Error>([&] { arrow_table(&stream); }),
              HasSubstr("reading a batch of the Arrow stream failed: the disk is gone"));
  EXPECT_EQ(*live, 0);
  EXPECT_THAT(message_of<Error>([&] { arrow_table(&stream); }), HasSubstr("released or read already"));
  EXPECT_THAT(message_of<Error>([] { table({numbers<float>("x", "f", {1})}); }), HasSubstr("no table"));
  EXPECT_THAT(message_of<Error>([] { table({structs("", {numbers<float>("x", "f", {})})}); }),
              HasSubstr("has no rows"));
}

}  // namespace
}  // namespace headrace::test
