#include "headrace/pipeline/arrow.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/arrow_builder.h"

namespace headrace::test {
namespace {

std::vector<ArrowNode> batches() {
  return {structs("", {numbers<float>("x", "f", {0, 1, 2}), numbers<std::int32_t>("label", "i", {0, 1, 2})}),
          structs("", {numbers<float>("x", "f", {}), numbers<std::int32_t>("label", "i", {})}),
          structs("", {with_nulls(numbers<float>("x", "f", {3, 4}), {true, true}),
                       numbers<std::int32_t>("label", "i", {3, 4})})};
}

std::vector<std::byte> buffer;

std::vector<std::int64_t> labels_from(const Source& source, std::uint64_t first) {
  std::vector<std::int64_t> labels;
  const auto stream = source.open_stream(first);
  while (const auto record = stream->next(buffer)) {
    std::int64_t label = 0;
    std::memcpy(&label, record->fields[0].data(), sizeof label);
    labels.push_back(label);
  }
  return labels;
}

TEST(ArrowStream, GivesRecordsFromAnyNumberOn) {
  int opened = 0;
  const SourcePtr source =
      arrow_stream([&](ArrowArrayStream* stream) { *stream = stream_of(batches()), ++opened; });
  EXPECT_TRUE(source->info().streamed);
  EXPECT_EQ(opened, 1) << "for the schema";
  EXPECT_THAT(labels_from(*source, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(opened, 1) << "the stream that the schema came from";
  EXPECT_THAT(labels_from(*source, 2), ElementsAre(2, 3, 4));
  EXPECT_THAT(labels_from(*source, 3), ElementsAre(3, 4));
  EXPECT_TRUE(labels_from(*source, 9).empty());
  EXPECT_EQ(opened, 4);
}

TEST(ArrowStream, RunsInALoader) {
  const SourcePtr source = arrow_stream([](ArrowArrayStream* stream) { *stream = stream_of(batches()); });
  const auto digests = cpu_digests_of(Dataset::from(source).batch({.global_batch = 2}), {});
  ASSERT_EQ(digests.size(), 3U);
  EXPECT_EQ(digests.back().examples, 1);
}

TEST(ArrowStream, ReadsImagesByTheirPath) {
  const TempFolder folder;
  const std::string file = folder.write("1.png", "the bytes of a file").string();
  const auto images = [&] {
    return structs("", {structs("image", {with_nulls(texts("bytes", "z", {"", "", "here"}), {false, false, true}),
                                          texts("path", "u", {"1.png", file, "1.png"})})});
  };
  const SourcePtr source = arrow_stream([&](ArrowArrayStream* stream) { *stream = stream_of({images()}); });
  const auto stream = source->open_stream(0);
  EXPECT_THROW(stream->next(buffer), DataError) << "a relative path";
  EXPECT_EQ(to_bytes(stream->next(buffer)->fields[0]), to_bytes("the bytes of a file"));
  EXPECT_EQ(to_bytes(stream->next(buffer)->fields[0]), to_bytes("here"));
}

TEST(ArrowStream, ANullIsABadRecordAndTheNextOneIsGood) {
  const SourcePtr source = arrow_stream([](ArrowArrayStream* stream) {
    *stream = stream_of({structs("", {with_nulls(numbers<std::int64_t>("label", "l", {1, 2}), {false, true})})});
  });
  const auto stream = source->open_stream(0);
  const DataError error = error_of<DataError>([&] { stream->next(buffer); });
  EXPECT_THAT(error.what(), HasSubstr("column 'label': is null"));
  EXPECT_EQ(error.location().record, 0U);
  EXPECT_TRUE(stream->next(buffer));
  EXPECT_FALSE(stream->next(buffer));
}

TEST(ArrowStream, TakesTextsListsAndNamedClasses) {
  const ArrowOptions options{.columns = {.columns = {"caption:text", "x"}}, .classes = {"dog", "cat"}};
  const SourcePtr source = arrow_stream(
      [](ArrowArrayStream* stream) {
        *stream = stream_of({structs("", {texts("label", "u", {"cat"}), texts("caption", "u", {"ab"}),
                                          lists("x", {2}, numbers<float>("item", "f", {1, 2}))})});
      },
      options);
  const auto record = source->open_stream(0)->next(buffer);
  EXPECT_EQ(to_bytes(record->fields[0]), bytes_of_values(std::vector<std::int64_t>{1}));
  EXPECT_EQ(record->fields[1].size(), 2U);
  EXPECT_EQ(to_bytes(record->fields[2]), bytes_of_values(std::vector<float>{1, 2}));
  EXPECT_EQ(source->info().fields[2].shape, Shape{Shape::kDynamic});
}

TEST(ArrowStream, RefusesWhatCannotBeKnownBeforehand) {
  const auto fault_in = [](ArrowNode column) {
    return message_of<Error>(
        [&] { arrow_stream([&](ArrowArrayStream* stream) { *stream = stream_of({structs("", {column})}); }); });
  };
  EXPECT_THAT(fault_in(texts("label", "u", {"cat"})), HasSubstr("cannot number before it has been read"));
  EXPECT_THAT(fault_in(lists("x", {1}, lists("item", {1}, numbers<float>("item", "f", {1})))),
              HasSubstr("lists of lists whose lengths the schema does not say"));
}

TEST(ArrowStream, RefusesOtherDataWhenOpenedAgain) {
  bool again = false;
  const SourcePtr source = arrow_stream([&](ArrowArrayStream* stream) {
    *stream = stream_of({structs("", {numbers<float>(std::exchange(again, true) ? "y" : "x", "f", {1})})});
  });
  source->open_stream(0);
  EXPECT_THROW(source->open_stream(0), ConfigError);
}

}  // namespace
}  // namespace headrace::test
