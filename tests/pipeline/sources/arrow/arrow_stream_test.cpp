// Streams of Arrow, in both directions.
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

Array array_of_floats(const std::string& name, const Shape& shape, std::int64_t records) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements() * records));
  std::iota(values.begin(), values.end(), 0.0F);
  return {.field = {.name = name, .dtype = DType::kF32, .shape = shape}, .bytes = bytes_of_values(values)};
}

// One exported batch, given as a stream.
struct OneBatch {
  ArrowSchema schema;
  ArrowArray array;

  static ArrowArrayStream stream(const SharedBatch& batch) {
    auto* one = new OneBatch;
    export_arrow(batch, &one->schema, &one->array);
    return {.get_schema =
                [](ArrowArrayStream* self, ArrowSchema* out) {
                  *out = std::exchange(static_cast<OneBatch*>(self->private_data)->schema, {});
                  return 0;
                },
            .get_next =
                [](ArrowArrayStream* self, ArrowArray* out) {
                  *out = std::exchange(static_cast<OneBatch*>(self->private_data)->array, {});
                  return 0;
                },
            .get_last_error = nullptr,
            .release =
                [](ArrowArrayStream* self) {
                  auto* given = static_cast<OneBatch*>(self->private_data);
                  if (given->schema.release != nullptr) given->schema.release(&given->schema);
                  if (given->array.release != nullptr) given->array.release(&given->array);
                  delete given;
                  self->release = nullptr;
                },
            .private_data = one};
  }
};

SourcePtr three_fields() {
  return in_memory("a", 5,
                   {array_of_floats("scalar", {}, 5), array_of_floats("vector", {3}, 5),
                    array_of_floats("tensor", {2, 2, 3}, 5)});
}

TEST(ArrowExport, ComesBackAsTheSameRecords) {
  const SourcePtr wanted = three_fields();
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(wanted).batch({.global_batch = 8}), devices, {.epochs = 1});
  const SharedBatch batch(std::move(*loader.next(0)));
  ArrowArrayStream stream = OneBatch::stream(batch);
  const SourcePtr source = arrow_table(&stream);
  EXPECT_EQ(source->info().fields, wanted->info().fields) << "with the shape of each";
  EXPECT_EQ(source->info().records, 5U) << "without the rows that pad the batch";
  std::vector<std::byte> scratch, other;
  for (std::uint64_t record = 0; record < 5; ++record) {
    const RecordView given = source->read(record, scratch), read = wanted->read(record, other);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(to_bytes(given.fields[i]), to_bytes(read.fields[i]));
  }
  EXPECT_EQ(source->columns()[2].data, static_cast<const std::byte*>(batch->tensor("tensor").data)) << "no copy";
}

TEST(ArrowExport, HoldsTheBatchUntilItIsReleased) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(three_fields()).batch({.global_batch = 1}).prefetch(1), devices, {.epochs = 1});
  ArrowSchema schema;
  ArrowArray array;
  export_arrow(SharedBatch(std::move(*loader.next(0))), &schema, &array);
  schema.release(&schema);
  const auto* values = static_cast<const float*>(array.children[1]->children[0]->buffers[1]);
  loader.next(0);
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{0, 1, 2}));
  ArrowArray vector = std::exchange(*array.children[1], {});
  array.release(&array);
  EXPECT_EQ(*static_cast<const float*>(vector.children[0]->buffers[1]), 0)
      << "a child that was moved out lives on";
  vector.release(&vector);
}

TEST(ArrowExport, RefusesBfloat16) {
  DeviceGroup devices = cpu_replicas(1);
  const Array halves{.field = {.name = "x", .dtype = DType::kBF16, .shape = {}}, .bytes = Bytes(4)};
  Loader loader(Dataset::from(in_memory("a", 2, {halves})).batch({.global_batch = 1}), devices);
  ArrowSchema schema;
  ArrowArray array;
  EXPECT_THROW(export_arrow(SharedBatch(std::move(*loader.next(0))), &schema, &array), ConfigError);
}

ArrowTableColumn column_of_floats(const std::string& name, const Shape& shape, std::vector<float> values) {
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  return {.name = name, .shape = shape, .data = kept->data(), .owner = kept};
}

TEST(ArrowExport, ColumnsComeBackAsATable) {
  ArrowArrayStream stream;
  export_arrow_table({column_of_floats("values", {2}, {1, 2, 3, 4, 5, 6}),
                      {.name = "name", .texts = std::vector<std::string>{"a.jpg", "", "c.jpg"}}},
                     3, &stream);
  const SourcePtr source = arrow_table(&stream, {.columns = {.columns = {"values", "name:text"}}});
  ASSERT_EQ(source->info().records, 3U);
  std::vector<std::byte> scratch;
  const RecordView last = source->read(2, scratch);
  EXPECT_EQ(to_bytes(last.fields[0]), bytes_of_values(std::vector<float>{5, 6}));
  EXPECT_EQ(last.fields[1][0], std::byte{'c'});
}

TEST(ArrowExport, AColumnLivesUntilItsArrayIsReleased) {
  ArrowTableColumn column = column_of_floats("x", {}, {1, 2});
  const std::weak_ptr<const void> owner = column.owner;
  ArrowArrayStream stream;
  ArrowArray array;
  ArrowSchema schema;
  export_arrow_table({std::move(column)}, 2, &stream);
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
  ArrowArray end;
  ASSERT_EQ(stream.get_next(&stream, &end), 0);
  EXPECT_EQ(end.release, nullptr) << "the end";
  stream.release(&stream);
  ArrowArray x = std::exchange(*array.children[0], {});
  array.release(&array);
  EXPECT_FALSE(owner.expired());
  x.release(&x);
  EXPECT_TRUE(owner.expired());
  EXPECT_STREQ(schema.children[0]->name, "x");
  schema.release(&schema);
}

TEST(ArrowExport, UnknownRowsAreNull) {
  ArrowTableColumn column = column_of_floats("x", {}, {1, 2, 3});
  column.known = {true, false, true};
  ArrowArrayStream stream;
  export_arrow_table({std::move(column)}, 3, &stream);
  const SourcePtr source = arrow_table(&stream);
  std::vector<std::byte> scratch;
  source->read(2, scratch);
  EXPECT_THROW(source->read(1, scratch), DataError);
  EXPECT_THROW(export_arrow_table({{.name = "t", .texts = std::vector<std::string>(2)}}, 3, &stream), ConfigError);
}

}  // namespace
}  // namespace headrace::test
