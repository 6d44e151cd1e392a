// WebDataset archives and TFRecord files as streams of shards: the records of the indexed sources, one after
// another.
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources/records/tf_records.h"
#include "headrace/pipeline/sources/streams/shard_stream.h"
#include "headrace/tests/pipeline/sources/packing.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

// The bytes of all fields of each record; those of a bad one are its error.
using Records = std::vector<std::vector<Bytes>>;

std::vector<Bytes> fields_of(const RecordView& view, const Fields& fields) {
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < fields.size(); ++i) bytes.push_back(to_bytes(view.fields[i]));
  return bytes;
}

Records rest_of(RecordStream& stream, const Fields& fields) {
  Records records;
  std::vector<std::byte> scratch;
  for (;;) {
    try {
      const std::optional<RecordView> view = stream.next(scratch);
      if (!view) return records;
      records.push_back(fields_of(*view, fields));
    } catch (const DataError&) {
      records.emplace_back();
    }
  }
}

ShardedSourcePtr sharded(const SourcePtr& source) { return {source, source->sharded()}; }

Records streamed(const SourcePtr& source) {
  ShardStream stream(sharded(source), {}, 0);
  return rest_of(stream, source->info().fields);
}

Records indexed(const Source& source) {
  Records records;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < source.info().records; ++i) {
    try {
      records.push_back(fields_of(source.read(i, scratch), source.info().fields));
    } catch (const DataError&) {
      records.emplace_back();
    }
  }
  return records;
}

// Read by position, from the last to the first.
void expect_places(const SourcePtr& stream, const ShardOrder& order, const std::string& mark,
                   std::span<const ShardSteps> by_record, const Records& expected) {
  ShardSteps steps;
  for (const ShardSteps& one : by_record) steps.insert(steps.end(), one.begin(), one.end());
  if (steps.empty() || std::ranges::find(steps, kUnplaced) != steps.end()) return;
  const std::string text = steps_to_text(steps, 1 << 20);
  EXPECT_EQ(parse_steps(text), steps) << text;
  PlacedRecords placed = place(*stream->sharded(), order, 0, mark, steps);
  ASSERT_EQ(placed.records.size(), expected.size());
  std::ranges::reverse(placed.records);
  PlacedStream backwards(sharded(stream), placed.records);
  Records records = rest_of(backwards, stream->info().fields);
  std::ranges::reverse(records);
  EXPECT_EQ(records, expected);
}

// The same records, and from every mark on what is left of them.
void expect_stream_of(const SourcePtr& whole, const SourcePtr& stream) {
  EXPECT_EQ(stream->info().fields, whole->info().fields);
  const Records expected = indexed(*whole);
  EXPECT_EQ(streamed(stream), expected);
  for (const std::uint64_t at_a_time : {1, 2, 5}) {
    const ShardOrder order{.at_a_time = at_a_time, .key = 3};
    ShardStream all(sharded(stream), order, 0);
    std::vector<std::string> marks{all.mark()};
    std::vector<ShardSteps> steps;
    const Fields& fields = stream->info().fields;
    Records records;
    std::vector<std::byte> scratch;
    for (;;) {
      try {
        const auto view = all.next(scratch);
        if (!view) break;
        records.push_back(fields_of(*view, fields));
      } catch (const DataError&) {
        records.emplace_back();
      }
      marks.push_back(all.mark());
      steps.push_back(all.take_steps());
    }
    EXPECT_THAT(records, ::testing::UnorderedElementsAreArray(expected));
    for (std::size_t i = 0; i < marks.size(); ++i) {
      ShardStream rest(sharded(stream), order, 0, marks[i]);
      const Records left(records.begin() + static_cast<std::ptrdiff_t>(i), records.end());
      EXPECT_EQ(rest_of(rest, fields), left) << marks[i];
      expect_places(stream, order, marks[i], std::span(steps).subspan(i), left);
    }
  }
}

Bytes image(std::size_t i) { return encode_jpeg(make_picture(8, 9, 3, i)); }

// Names in all kinds of headers, a link, a bad sample, and members that are not of a sample.
Bytes archive(std::size_t first, std::size_t count) {
  TarBuilder tar;
  tar.add_folder("part/").add("part/readme", to_bytes("hello"));
  for (std::size_t i = first; i < first + count; ++i) {
    const std::string key = "part/" + std::to_string(i);
    tar.add(key + ".txt", to_bytes("a caption"));
    if (i % 4 == 1) {
      tar.add_with_gnu_name(key + std::string(120, 'x') + ".jpg", image(i));
      tar.add_with_gnu_name(key + std::string(120, 'x') + ".cls", to_bytes(std::to_string(i)));
    } else if (i % 4 == 2) {
      tar.add_with_pax(key + "-\xC3\xA9.jpg", image(i)).add_with_pax(key + "-\xC3\xA9.cls", to_bytes("2"));
    } else {
      tar.add(key + ".jpg", image(i)).add(key + ".cls", to_bytes(i == 4 ? "four" : std::to_string(i)));
    }
  }
  tar.add_hard_link("part/link.jpg", "part/" + std::to_string(first) + ".jpg").add("part/link.cls", to_bytes("9"));
  return tar.finish();
}

TEST(ShardSources, GiveTheSamplesOfArchives) {
  for (const Packing packing : {Packing::kPlain, Packing::kGzip, Packing::kZstd}) {
    const TempFolder folder;
    // The link's target is too large to be kept of a packed archive.
    const auto made = [&](std::size_t first) {
      Bytes bytes = archive(first, 3);
      return pack(bytes, packing);
    };
    folder.write("a.tar", made(0));
    folder.write("b.tar", pack(TarBuilder().finish(), packing));
    folder.write("c.tar", made(3));
    folder.write("d.tar", made(7));
    const SourcePtr whole = web_dataset(folder.path()), stream = web_dataset(folder.path(), {.indexed = false});
    EXPECT_TRUE(stream->info().streamed);
    EXPECT_THAT(stream->info().reading, HasSubstr("4 shards, not indexed"));
    expect_stream_of(whole, stream);
    EXPECT_EQ(stream->describe(ShardedSource::number_of(2, 1)), "c.tar[1]");
  }
}

TEST(ShardSources, TakeMembersAlong) {
  const TempFolder folder;
  TarBuilder tar;
  for (std::size_t i = 0; i < 5; ++i) {
    const std::string key = "00" + std::to_string(i);
    std::string boxes;
    for (std::size_t box = 0; box < i; ++box)
      boxes += (box == 0 ? "" : ",") + std::string("[1,2,") + std::to_string(box) + "]";
    tar.add(key + ".txt", to_bytes("caption " + std::to_string(i)));
    tar.add(key + ".jpg", image(i));
    tar.add(key + ".seg.png", encode_png(make_picture(8, 9, 1, i)));
    tar.add(key + ".json",
            to_bytes("{\"label\": 1, \"boxes\": [" + boxes + "], \"score\": " + std::to_string(i) + "}"));
    const std::vector<float> values{static_cast<float>(i), 0.5F};
    tar.add(key + ".npy", make_npy("<f4", "(2,)", to_bytes(std::as_bytes(std::span(values))), false));
  }
  folder.write("a.tar", tar.finish());
  WebDatasetOptions options{
      .members = {"caption=txt", "seg=seg.png:mask", "npy", "boxes=json.boxes:list", "json.score"}};
  const SourcePtr whole = web_dataset(folder / "a.tar", options);
  options.indexed = false;
  expect_stream_of(whole, web_dataset(folder / "a.tar", options));
}

TEST(ShardSources, HaveLabelsOfEveryType) {
  const TempFolder folder;
  TarBuilder numbers, names;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string key = std::to_string(i);
    numbers.add(key + ".jpg", image(i)).add(key + ".cls", to_bytes(key + ".25"));
    names.add(key + ".jpg", image(i)).add(key + ".cls", to_bytes(i == 3 ? "gnu" : i % 2 == 0 ? "emu" : "cat"));
  }
  const auto numbered = folder.write("numbers.tar", numbers.finish());
  const auto named = folder.write("names.tar", names.finish());
  expect_stream_of(web_dataset(numbered, {.label_type = LabelType::kNumber}),
                   web_dataset(numbered, {.label_type = LabelType::kNumber, .indexed = false}));
  const std::vector<std::string> classes{"emu", "cat"};
  expect_stream_of(web_dataset(named, {.classes = classes, .label_type = LabelType::kClass}),
                   web_dataset(named, {.classes = classes, .label_type = LabelType::kClass, .indexed = false}));
  EXPECT_THAT(message_of([&] { web_dataset(named, {.label_type = LabelType::kClass, .indexed = false}); }),
              HasSubstr("WebDatasetOptions::classes"));
  EXPECT_THAT(message_of([&] { web_dataset(named, {.members = {"cls:class"}, .indexed = false}); }),
              HasSubstr("numbered when all samples are known"));
}

Bytes tf_frames(std::size_t first, std::size_t count) {
  Bytes file;
  for (std::size_t i = first; i < first + count; ++i) {
    append(file, frame(example({entry("image/encoded", bytes_feature(image(i))),
                                entry("image/class/label", packed_feature(static_cast<std::int64_t>(i))),
                                entry("size", packed_feature({i, 2 * i})),
                                entry("name", bytes_feature(to_bytes("x")))})));
  }
  return file;
}

TEST(ShardSources, GiveTheExamplesOfTfRecords) {
  for (const auto pack_as : {+[](std::span<const std::byte> bytes) { return to_bytes(bytes); }, &gzip, &zlib}) {
    const TempFolder folder;
    Bytes damaged = tf_frames(3, 4);
    damaged[damaged.size() - 30] ^= std::byte{1};  // of the last payload
    folder.write("a.tfrecord", pack_as(tf_frames(0, 3)));
    folder.write("b.tfrecord", pack_as(damaged));
    folder.write("c.tfrecord", pack_as(tf_frames(7, 5)));
    TfRecordOptions options{.feature_keys = {"size", "name:text"}};
    const SourcePtr whole = tf_records(folder.path(), options);
    options.indexed = false;
    expect_stream_of(whole, tf_records(folder.path(), options));
  }
}

TEST(ShardSources, AreOpenedByTheirContent) {
  const TempFolder folder;
  folder.write("a.tar", archive(0, 3));
  const SourcePtr source = open_source(folder.path(), Split::kTrain, {.indexed = false});
  EXPECT_NE(source->sharded(), nullptr);
  const Dataset plan = Dataset::from(source)
                           .shuffle_shards({.window = 64, .seed = 3})
                           .decode({.height = 8, .width = 9})
                           .batch({.global_batch = 2});
  const Dataset again = Dataset::from_json(plan.to_json());
  EXPECT_EQ(again.fingerprint(), plan.fingerprint());
  EXPECT_TRUE(again.streamed());
  folder.write("images/cat/1.jpg", image(1));
  EXPECT_THAT(message_of([&] { open_source(folder / "images", Split::kTrain, {.indexed = false}); }),
              HasSubstr("only WebDataset archives and TFRecords"));
}

TEST(ShardSources, AreIdentifiedByNamesAndSizes) {
  const TempFolder one, other;
  for (const TempFolder* folder : {&one, &other}) folder->write("a.tar", archive(0, 3));
  const auto of = [](const TempFolder& folder, WebDatasetOptions options = {}) {
    options.indexed = false;
    return web_dataset(folder.path(), options)->info();
  };
  EXPECT_EQ(of(one).fingerprint, of(other).fingerprint);
  EXPECT_NE(of(one).fingerprint, of(one, {.members = {"txt:text"}}).fingerprint);
  EXPECT_NE(of(one).fingerprint, web_dataset(one.path())->info().fingerprint);
  other.write("b.tar", archive(3, 3));
  EXPECT_NE(of(one).fingerprint, of(other).fingerprint);
}

// Every cut makes an error that names the shard, or leaves whole records.
template <typename Open>
void expect_cuts_noticed(const TempFolder& folder, const std::string& first, const std::string& second,
                         const Bytes& whole, const Open& open) {
  for (std::size_t size = 1; size < whole.size(); size += 41) {
    folder.write(first, whole);
    folder.write(second, std::span(whole).first(size));
    Records records;
    try {
      records = streamed(open(false));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(second)) << size;
      continue;
    }
    EXPECT_EQ(records, indexed(*open(true))) << size;
  }
}

TEST(ShardSources, NoticeCutShards) {
  const TempFolder tars, tfs;
  expect_cuts_noticed(tars, "a.tar", "b.tar", archive(0, 2),
                      [&](bool with_index) { return web_dataset(tars.path(), {.indexed = with_index}); });
  expect_cuts_noticed(tfs, "a.tfrecord", "b.tfrecord", tf_frames(0, 3),
                      [&](bool with_index) { return tf_records(tfs.path(), {.indexed = with_index}); });
}

TEST(ShardSources, RefuseWhatHasNoSample) {
  const TempFolder folder;
  folder.write("a.tar", TarBuilder().finish());
  EXPECT_THAT(error_of([&] { web_dataset(folder.path(), {.indexed = false}); }).what(), HasSubstr("no sample"));
  folder.write("a.tar", TarBuilder().add("x.txt", to_bytes("x")).finish());
  EXPECT_THAT(error_of([&] { web_dataset(folder.path(), {.indexed = false}); }).what(), HasSubstr("no sample"));
}

}  // namespace
}  // namespace headrace::test
