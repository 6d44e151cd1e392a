// concatenate, interleave, mix, zip and unbatch: what comes where, and that it is one stream.
#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

// Values first, first + 1, ...
Dataset counting(std::int64_t first, std::uint64_t count, const std::string& field = "value") {
  std::vector<std::byte> bytes(count * sizeof first);
  for (std::uint64_t i = 0; i < count; ++i, ++first)
    std::memcpy(bytes.data() + i * sizeof first, &first, sizeof first);
  return Dataset::from(
      in_memory("counting", count,
                {Array{.field = {.name = field, .dtype = DType::kI64, .shape = {}}, .bytes = std::move(bytes)}}));
}

std::vector<std::int64_t> first_epoch_of(const Dataset& dataset) {
  return values_of(dataset.batch({.global_batch = 3}))[0];
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::string refusal_of_combining(const std::function<Dataset()>& make) {
  return message_of([&] { make().explain(); });
}

TEST(Concatenate, IsOneAfterTheOther) {
  EXPECT_THAT(first_epoch_of(concatenate({counting(0, 3), counting(10, 0), counting(20, 2)})),
              ElementsAre(0, 1, 2, 20, 21));
  const Dataset nested =
      concatenate({concatenate({counting(0, 4).skip(2), counting(10, 2)}).repeat(2), counting(20, 1)});
  EXPECT_THAT(first_epoch_of(nested), ElementsAre(2, 3, 10, 11, 2, 3, 10, 11, 20));
  EXPECT_THAT(first_epoch_of(concatenate({counting(0, 5)}).shard(2, 1)), ElementsAre(1, 3));
}

TEST(Concatenate, ShufflesEachPartForItself) {
  const Dataset parts = concatenate({counting(0, 40).shuffle(), counting(100, 40).shuffle()});
  const auto values = values_of(parts.batch({.global_batch = 7}), 2);
  for (const auto& epoch : values) {
    const std::vector<std::int64_t> first(epoch.begin(), epoch.begin() + 40);
    EXPECT_EQ(sorted(first), first_epoch_of(counting(0, 40)));
    std::vector<std::int64_t> second(epoch.begin() + 40, epoch.end());
    for (std::int64_t& value : second) value -= 100;
    EXPECT_NE(first, second) << "not the same shuffle";
  }
  EXPECT_NE(values[0], values[1]);
}

TEST(Interleave, TakesTurns) {
  EXPECT_THAT(first_epoch_of(interleave({counting(0, 4), counting(10, 1), counting(20, 2)})),
              ElementsAre(0, 10, 20, 1, 21, 2, 3));
  EXPECT_THAT(first_epoch_of(interleave({counting(0, 5), counting(10, 3)}, {.block = 2})),
              ElementsAre(0, 1, 10, 11, 2, 3, 12, 4));
}

TEST(Mix, WithoutWeightsGivesEachRecordOnce) {
  const Dataset mixed = mix({counting(0, 30), counting(100, 10), counting(200, 0)});
  const auto epochs = values_of(mixed.batch({.global_batch = 7}), 2);
  for (const auto& epoch : epochs)
    EXPECT_EQ(sorted(epoch), first_epoch_of(concatenate({counting(0, 30), counting(100, 10)})));
  EXPECT_NE(epochs[0], epochs[1]) << "another merge each epoch";
  expect_contents(mixed.batch({.global_batch = 7}), EpochContents::all(40), 3);
}

TEST(Mix, EndsWithTheFirstThatEnds) {
  const Dataset mixed = mix({counting(0, 300), counting(1000, 100)}, {.weights = {1, 1}});
  EXPECT_EQ(mixed.size(), 200U);
  const auto epoch = first_epoch_of(mixed);
  EXPECT_EQ(std::ranges::count_if(epoch, [](std::int64_t value) { return value >= 1000; }), 100);
  const std::vector<std::int64_t> ascending = sorted(epoch);
  EXPECT_EQ(ascending.front(), 0);
  EXPECT_TRUE(std::ranges::adjacent_find(ascending, std::greater_equal<>()) == ascending.end()) << "none twice";
  EXPECT_EQ(mix({counting(0, 300), counting(1000, 100)}, {.weights = {3, 1}}).size(), 400U);
  EXPECT_EQ(mix({counting(0, 300), counting(1000, 0)}, {.weights = {3, 1}}).size(), 0U);
}

TEST(Mix, StartsSmallOnesAnewUntilAllWereSeen) {
  const Dataset mixed =
      mix({counting(0, 300), counting(1000, 10).shuffle()}, {.weights = {3, 1}, .end = MixEnd::kAllSeen});
  EXPECT_EQ(mixed.size(), 400U);
  std::map<std::int64_t, int> times;
  std::vector<std::int64_t> small;
  for (const std::int64_t value : first_epoch_of(mixed)) {
    ++times[value];
    if (value >= 1000) small.push_back(value);
  }
  EXPECT_EQ(times.size(), 310U);
  for (const auto& [value, count] : times) EXPECT_EQ(count, value >= 1000 ? 10 : 1) << value;
  const std::vector<std::int64_t> first(small.begin(), small.begin() + 10),
      second(small.begin() + 10, small.begin() + 20);
  EXPECT_NE(first, second) << "shuffled again";
  EXPECT_EQ(sorted(first), sorted(second));
}

TEST(Zip, PutsFieldsTogether) {
  const Dataset zipped = zip({counting(0, 5), counting(10, 9, "other").skip(2).shard(2, 1)}, {.strict = false});
  EXPECT_EQ(zipped.size(), 3U);
  ASSERT_EQ(zipped.fields().size(), 2U);
  EXPECT_EQ(zipped.fields()[1].name, "other");
  EXPECT_THAT(first_epoch_of(zipped), ElementsAre(0, 1, 2));
  DeviceGroup devices = test_devices(1);
  Loader loader(zipped.batch({.global_batch = 3}), devices);
  const auto batch = loader.next();
  EXPECT_THAT(download<std::int64_t>(devices[0], *batch, "other"), ElementsAre(13, 15, 17));
}

TEST(Zip, WantsEqualLengthsUnlessTold) {
  const Dataset odd = counting(10, 9, "other").filter({.name = "odd", .keeps = [](const ExampleView& record) {
                                                         return record.bytes("other")[0] != std::byte{10};
                                                       }});
  EXPECT_THAT(refusal_of_combining([&] {
                return zip({counting(0, 9), odd});
              }),
              AllOf(HasSubstr("9 records of"), HasSubstr("and 8 of"), HasSubstr("ZipOptions::strict = false")));
  EXPECT_EQ(zip({counting(0, 9), odd}, {.strict = false}).size(), 8U);
  const auto batches = [](bool strict) {
    return zip({counting(0, 9).batch({.global_batch = 3}), counting(0, 6, "b").batch({.global_batch = 3})},
               {.strict = strict});
  };
  EXPECT_THAT(refusal_of_combining([&] { return batches(true); }), HasSubstr("3 batches of"));
  EXPECT_EQ(batches(false).size(), 6U);
}

// What zip() says of two folders of files with these names; empty: it pairs them.
std::string refusal_of_names(const std::vector<std::string>& images, const std::vector<std::string>& others) {
  const TempFolder folder;
  const auto png = encode_png(make_picture(2, 2, 1, 1));
  for (const std::string& name : images) folder.write("a/" + name, png);
  for (const std::string& name : others) folder.write("b/" + name, png);
  const auto open = [&](const char* name) {
    return Dataset::from(image_folder(folder / name, Split::kTrain, {.classes_at = "none"}));
  };
  const ZipOptions options{.suffixes = {"", "_b"}};
  try {
    return zip({open("a"), open("b")}, options).size() == images.size() ? "" : "other";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Zip, RefusesFilesWhoseNamesDiffer) {
  using Names = std::vector<std::string>;
  const std::pair<Names, Names> alike[] = {{{"1.png", "2.png"}, {"1_mask.png", "2_mask.png"}},
                                           {{"img1.png", "img12.png"}, {"mask1.jpg", "mask12.jpg"}},
                                           {{"a/07_sat.png", "b/08_sat.png"}, {"a/07_mask.png", "b/08_mask.png"}},
                                           {{"x-1.png"}, {"y-1.png"}},
                                           {{"10_left.png", "11_left.png"}, {"10_gt_ids.png", "11_gt_ids.png"}}};
  for (const auto& [a, b] : alike) EXPECT_EQ(refusal_of_names(a, b), "");
  EXPECT_THAT(refusal_of_names({"1.png", "10.png", "2.png"}, {"10_mask.png", "1_mask.png", "2_mask.png"}),
              AllOf(HasSubstr("record 0 would be 1.png of"), HasSubstr("with 10_mask.png of"),
                    HasSubstr("mask=../masks/{stem}_mask.png:mask"), HasSubstr("ZipOptions::strict = false")));
  EXPECT_THAT(refusal_of_names({"1.png", "2.png"}, {"1.png", "3.png"}), HasSubstr("2.png of"));
  EXPECT_THAT(refusal_of_names({"a/1.png", "b/1.png"}, {"a/1.png", "c/1.png"}), HasSubstr("c/1.png"));
  EXPECT_THAT(refusal_of_names({"7.png", "9.png", "11.png"}, {"9.png", "11.png", "7.png", "8.png"}),
              HasSubstr("4 records of"));
}

TEST(Zip, TellsEqualNamesApart) {
  EXPECT_THAT(refusal_of_combining([] { return zip({counting(0, 5), counting(1, 5)}); }), HasSubstr("'value'"));
  const Fields fields =
      zip({counting(0, 5), counting(1, 5), counting(2, 5, "x")}, {.suffixes = {"", "_2", "_3"}}).fields();
  EXPECT_EQ(fields[0].name, "value");
  EXPECT_EQ(fields[1].name, "value_2");
  EXPECT_EQ(fields[2].name, "x");
  EXPECT_THAT(refusal_of_combining([] {
                return zip({counting(0, 5)}, {.suffixes = {"", "b"}});
              }),
              HasSubstr("suffixes"));
  EXPECT_THAT(refusal_of_combining([] {
                return zip({counting(0, 5).shuffle(), counting(1, 5, "x")});
              }),
              HasSubstr("after zip()"));
  EXPECT_THAT(refusal_of_combining([] {
                return zip({mix({counting(0, 5)}), counting(1, 5, "x")});
              }),
              HasSubstr("after zip()"));
}

TEST(Zip, KeepsTheBytesOfSourcesThatRead) {
  const auto make = [](std::uint64_t count) { return Dataset::from(std::make_shared<FakeSource>(count)); };
  const Dataset inner = zip({make(20), make(20).skip(1)}, {.suffixes = {"_a", "_b"}, .strict = false});
  const Dataset zipped = zip({inner, make(20).skip(2), counting(0, 30, "c")}, {.strict = false});
  EXPECT_EQ(zipped.size(), 18U);
  DeviceGroup devices = test_devices(1);
  Loader loader(zipped.shuffle().batch({.global_batch = 5}), devices, {.threads = 2});
  std::uint64_t seen = 0;
  while (const auto batch = loader.next()) {
    const auto values = [&](const char* field) {
      return download_examples<std::int64_t>(devices[0], *batch, field);
    };
    const auto a = values("value_a"), b = values("value_b"), third = values("value"), c = values("c");
    for (std::size_t i = 0; i < a.size(); ++i, ++seen) {
      EXPECT_EQ(b[i], a[i] + 1);
      EXPECT_EQ(third[i], a[i] + 2);
      EXPECT_EQ(c[i], a[i]);
    }
  }
  EXPECT_EQ(seen, 18U);
}

Dataset batches_of_four() {
  std::vector<std::byte> bytes(5 * 4 * sizeof(std::int64_t));
  for (std::int64_t i = 0; i < 20; ++i)
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof i, &i, sizeof i);
  return Dataset::from(in_memory(
      "batches", 5,
      {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {4}}, .bytes = std::move(bytes)}}));
}

TEST(Unbatch, TakesRecordsApart) {
  EXPECT_EQ(first_epoch_of(batches_of_four().unbatch()), first_epoch_of(counting(0, 20)));
  EXPECT_THAT(first_epoch_of(batches_of_four().skip(4).unbatch().skip(1)), ElementsAre(17, 18, 19));
  const auto shuffled = first_epoch_of(batches_of_four().shuffle().unbatch());
  EXPECT_EQ(sorted(shuffled), first_epoch_of(counting(0, 20)));
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(shuffled[i] % 4, static_cast<std::int64_t>(i % 4));
  EXPECT_EQ(batches_of_four().unbatch().fields()[0].shape, Shape());
  EXPECT_THAT(refusal_of_combining([] { return counting(0, 5).unbatch(); }), HasSubstr("is no batch"));
  EXPECT_THAT(refusal_of_combining([] { return batches_of_four().cache(memory()).unbatch(); }),
              HasSubstr("before them"));
}

TEST(Window, PutsConsecutiveRecordsTogether) {
  const Dataset windows = counting(0, 8).window({.size = 3, .shift = 2});
  EXPECT_EQ(windows.fields()[0].shape, Shape{3});
  EXPECT_THAT(first_epoch_of(windows), ElementsAre(0, 1, 2, 2, 3, 4, 4, 5, 6));
  EXPECT_THAT(first_epoch_of(counting(0, 8).skip(1).shard(2, 0).window({.size = 2})), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(first_epoch_of(counting(0, 7).window({.size = 3}).unbatch()), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(counting(0, 2).window({.size = 3}).size(), 0U);
  EXPECT_EQ(counting(0, 8).window({.size = 3, .shift = 5}).size(), 2U);
}

TEST(Window, MayHaveFewerRecordsAtTheEnd) {
  const Dataset windows = counting(0, 5).window({.size = 3, .shift = 2, .drop_remainder = false});
  EXPECT_TRUE(windows.fields()[0].shape.is_dynamic());
  EXPECT_THAT(values_of(windows.padded_batch({.global_batch = 2}))[0], ElementsAre(0, 1, 2, 2, 3, 4, 4, 0, 0));
}

TEST(Window, IsOneStream) {
  expect_one_stream(
      counting(0, 40).window({.size = 4, .shift = 1}).shuffle().repeat(2).batch({.global_batch = 7}));
  EXPECT_NE(counting(0, 9).window({.size = 3}).fingerprint(),
            counting(0, 9).window({.size = 3, .shift = 2}).fingerprint());
  EXPECT_THAT(refusal_of_combining([] { return counting(0, 5).shuffle().window({}); }),
              HasSubstr("after window()"));
  EXPECT_THAT(refusal_of_combining([] { return counting(0, 5).window({.size = 0}); }), HasSubstr("window(0)"));
  EXPECT_THAT(refusal_of_combining([] { return counting(0, 5).cache(memory()).window({}); }),
              HasSubstr("put window() before them"));
}

TEST(Combine, IsOneStream) {
  const Dataset a = counting(0, 31).shuffle({.seed = 1}), b = counting(100, 14).repeat(2).shuffle();
  const auto read = [](std::uint64_t count) { return Dataset::from(std::make_shared<FakeSource>(count)); };
  expect_one_stream(concatenate({a, b, read(9)}).shuffle().batch({.global_batch = 6}));
  expect_one_stream(interleave({a, b, read(9)}, {.block = 3}).batch({.global_batch = 6}));
  expect_one_stream(mix({a, b, read(9)}, {.weights = {1, 2, 0.5}, .seed = 3}).batch({.global_batch = 6}));
  expect_one_stream(mix({a, b}, {.weights = {5, 1}, .end = MixEnd::kAllSeen}).batch({.global_batch = 6}));
  expect_one_stream(
      zip({counting(0, 29).skip(2), read(27)}, {.suffixes = {"", "_2"}}).shuffle().batch({.global_batch = 5}));
  expect_one_stream(batches_of_four().shuffle().unbatch().batch({.global_batch = 6}));
  const Dataset images = Dataset::from(noise_images(20, 8, 8));
  expect_one_stream(
      concatenate({images, images}).shuffle().map(pad_crop(8, 2) | flip()).batch({.global_batch = 7}));
}

TEST(Combine, GivesEachRecordOnce) {
  const Dataset a = counting(0, 31).shuffle(), b = counting(100, 14).shuffle();
  expect_contents(concatenate({a, b}).shuffle().batch({.global_batch = 6}), EpochContents::all(45), 3);
  expect_contents(interleave({a, b}, {.block = 4}).batch({.global_batch = 6}), EpochContents::all(45), 3);
  expect_contents(batches_of_four().shuffle().unbatch().batch({.global_batch = 6}), EpochContents::all(20), 3);
}

TEST(Combine, IsExplainedAndFingerprinted) {
  const Dataset a = counting(0, 31), b = counting(100, 14);
  const auto of = [](const Dataset& dataset) { return dataset.batch({.global_batch = 4}).fingerprint(); };
  const std::vector<Dataset> all{concatenate({a, b}),
                                 concatenate({b, a}),
                                 concatenate({a, b.take(14)}),
                                 interleave({a, b}),
                                 interleave({a, b}, {.block = 2}),
                                 mix({a, b}),
                                 mix({a, b}, {.seed = 1}),
                                 mix({a, b}, {.weights = {1, 2}}),
                                 mix({a, b}, {.weights = {1, 3}}),
                                 mix({a, b}, {.weights = {1, 3}, .end = MixEnd::kAllSeen}),
                                 zip({a, b}, {.suffixes = {"", "_2"}, .strict = false}),
                                 zip({a, b.skip(1)}, {.suffixes = {"", "_2"}, .strict = false}),
                                 zip({a, b}, {.suffixes = {"", "_3"}, .strict = false})};
  std::set<std::uint64_t> different;
  for (const Dataset& dataset : all) different.insert(of(dataset));
  EXPECT_EQ(different.size(), all.size());
  EXPECT_EQ(of(concatenate({a, b})), of(all[0]));
  EXPECT_THAT(mix({a.shuffle({.seed = 5}), b}, {.weights = {1, 3}}).explain(),
              HasSubstr("mix(weights=[1, 3], seed=0, end=first_ends): [31 records | shuffle(seed=5, "
                        "reshuffle_each_epoch=true)] [14 records]  [on indices]"));
}

TEST(Combine, RefusesWhatDoesNotFit) {
  const Dataset a = counting(0, 5);
  EXPECT_THAT(refusal_of_combining([] { return concatenate({}); }), HasSubstr("no datasets"));
  EXPECT_THAT(refusal_of_combining([&] {
                return concatenate({a, counting(0, 5, "other")});
              }),
              HasSubstr("same fields"));
  const Dataset images = Dataset::from(noise_images(5, 8, 8));
  EXPECT_THAT(refusal_of_combining([&] {
                return concatenate({images, images.map(cast(DType::kF32))});
              }),
              HasSubstr("same fields"));
  EXPECT_THAT(refusal_of_combining([&] {
                return mix({a.batch({.global_batch = 2}), a});
              }),
              HasSubstr("has a batch() and that of counting has none"));
  EXPECT_THAT(refusal_of_combining([&] { return mix({images.map(flip())}).filter(with_labels({1})); }),
              HasSubstr("flip(probability=0.5, alternating=false): its result changes"));
  EXPECT_THAT(refusal_of_combining([&] {
                return mix({a, a}, {.weights = {1}});
              }),
              HasSubstr("1 weights for 2 datasets"));
  EXPECT_THAT(refusal_of_combining([&] { return mix({a, a}, {.weights = {1, 0}}); }), HasSubstr("not above 0"));
  EXPECT_THAT(refusal_of_combining([&] { return mix({a, a}, {.weights = {1, NAN}}); }), HasSubstr("not above 0"));
  EXPECT_THAT(refusal_of_combining([&] { return interleave({a}, {.block = 0}); }), HasSubstr("block"));
}

}  // namespace
}  // namespace headrace::test
