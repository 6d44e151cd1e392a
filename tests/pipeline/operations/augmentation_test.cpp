// Streams with each operation: the same bits for all threads, replicas, prefetch depths and resume points; and
// what mixing does to whole batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/beta.h"
#include "headrace/pipeline/operations/pairing.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/sources/image_fixture.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

using test::cpu_digests_of;
using test::digests_of;
using test::noise_images;
using test::TempFolder;
using test::test_devices;
using ::testing::HasSubstr;

constexpr std::int64_t kGlobal = 12;

// 53 examples: the last batch has 5.
Dataset samples() { return Dataset::from(noise_images(53, 12, 10)).shuffle({.seed = 1}); }

Dataset augmented_by(const Operations& operations) { return samples().map(operations).batch({.global = kGlobal}); }

Dataset mixed(const Operations& mixing, const Operations& before) {
  return samples().map(before | one_hot(10, 0.1F)).batch({.global = kGlobal}).map(mixing);
}

const std::vector<float> kColourMean{0.5F, 0.4F, 0.3F}, kColourStd{0.2F, 0.3F, 0.4F};

std::map<std::string, Dataset> streams() {
  const Operations floats = normalize(kColourMean, kColourStd);
  const Operations planes = floats | to_layout(ImageLayout::kChannelsFirst);
  std::map<std::string, Dataset> all;
  const auto add = [&](const std::string& name, const Dataset& dataset) { all.emplace(name, dataset); };
  add("color_jitter",
      augmented_by(color_jitter({.brightness = 0.4F, .contrast = 0.4F, .saturation = 0.4F, .hue = 0.1F})));
  add("color_jitter_among_others",
      augmented_by(pad_crop(9, 2) | color_jitter({.contrast = 0.5F}) | flip() | planes));
  add("brightness_contrast",
      augmented_by(flip() | planes | brightness_contrast({.brightness = 0.3F, .contrast = 0.4F}) | cutout(3)));
  add("cutout_bytes", augmented_by(cutout(4, {1, 2, 3})));
  add("cutout_planes", augmented_by(planes | cutout(5)));
  add("one_hot", augmented_by(one_hot(10, 0.1F)));
  add("random_resized_crop", augmented_by(random_resized_crop({.size = 7}) | flip()));
  add("resize_center_crop", augmented_by(resize(11) | center_crop(8)));
  add("pad_crop_flip", augmented_by(pad_crop(10, 3, Padding::kReflect) | flip() | planes));
  add("mixup_floats", mixed(mixup(), planes));
  add("mixup_bytes", mixed(mixup({.alpha = 1, .probability = 0.7F}), flip()));
  add("cutmix_planes", mixed(cutmix(), planes));
  add("cutmix_bytes", mixed(cutmix({.alpha = 0.3F}), flip()));
  add("cutmix_then_mixup", mixed(cutmix() | mixup(), floats | cutout(3)));
  add("mixup_cached",
      samples().map(one_hot(10)).cache(memory()).map(flip() | floats).batch({.global = kGlobal}).map(mixup()));
  return all;
}

class Augmentation : public ::testing::TestWithParam<std::string> {};

TEST_P(Augmentation, GivesTheSameBitsForAnyThreadsReplicasPrefetchAndResumePoint) {
  const Dataset dataset = streams().at(GetParam());
  const auto whole = cpu_digests_of(dataset, {.seed = 4, .epochs = 2, .threads = 1, .prefetch = 0});
  ASSERT_EQ(whole.size(), 10U);
  DeviceGroup one = test_devices(1);
  const LoaderState start = Loader(dataset, one, {.seed = 4, .epochs = 2}).state();
  std::size_t step = 0;
  for (const int threads : {1, 2, 4}) {
    for (const int replicas : {1, 2, 3}) {
      for (const int prefetch : {0, 2}) {
        const LoaderOptions options{.seed = 4, .epochs = 2, .threads = threads, .prefetch = prefetch};
        EXPECT_EQ(digests_of(dataset, replicas, options), whole)
            << threads << " threads, " << replicas << " replicas, prefetch " << prefetch;
        LoaderOptions later = options;
        later.start = start;
        step = (step + 1) % (whole.size() + 1);
        later.start->sequence = step;
        EXPECT_EQ(digests_of(dataset, replicas, later),
                  std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()))
            << "from " << step;
      }
    }
  }
  EXPECT_EQ(whole[0].examples, kGlobal);
  EXPECT_EQ(whole[4].examples, 5);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, dataset] : streams()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Streams, Augmentation, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

// JPEGs that come again and again are mapped when they first come, and cut from then on; those of two epochs are
// not.
TEST(DecodedWindows, AreTheSameOfImagesThatComeOftenAndSeldom) {
  test::TarBuilder tar;
  for (int i = 0; i < 30; ++i) {
    const test::JpegOptions options{.horizontal = 1 + i % 2, .vertical = 1 + i % 2, .progressive = i % 7 == 3};
    tar.add((i % 2 == 0 ? "train/cat/" : "train/dog/") + std::to_string(i) + ".jpg",
            encode_jpeg(test::make_picture(70 + i, 90, 3, static_cast<std::uint64_t>(i)), options));
  }
  const TempFolder folder;
  const SourcePtr source = image_archive(folder.write("images.tar", tar.finish()));
  for (const Operations& operations : {random_resized_crop({.size = 16}) | flip(), resize(24) | center_crop(16)}) {
    const Dataset dataset = Dataset::from(source).shuffle().decode().map(operations).batch({.global = kGlobal});
    const auto seldom = cpu_digests_of(dataset, {.seed = 4, .epochs = 2, .threads = 1});
    for (const int threads : {1, 3}) {
      auto often = digests_of(dataset, 2, {.seed = 4, .epochs = 5, .threads = threads});
      often.resize(seldom.size());
      EXPECT_EQ(often, seldom);
    }
    // Room for some of the maps.
    auto tight = digests_of(dataset, 1,
                            {.seed = 4, .epochs = 5, .threads = 1, .prefetch = 1, .memory_budget_bytes = 1 << 18});
    tight.resize(seldom.size());
    EXPECT_EQ(tight, seldom);
  }
}

TEST(Mixing, GivesTheSameBitsThroughPinnedMemoryAndCopies) {
  const Dataset dataset = mixed(mixup() | cutmix(), normalize(kColourMean, kColourStd));
  const auto expected = cpu_digests_of(dataset, {.seed = 4, .threads = 1});
  DeviceGroup devices = test::own_memory_devices(3);
  Loader loader(dataset, devices, {.seed = 4, .threads = 2});
  EXPECT_EQ(digests_of(loader, devices), expected);
}

// All examples of the epoch, batch by batch: images and labels as floats.
struct Rows {
  std::vector<std::vector<float>> images, labels;
};

std::vector<Rows> batches_of(const Dataset& dataset, std::uint64_t epochs = 1) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.seed = 4, .epochs = epochs});
  std::vector<Rows> all;
  while (const auto batch = loader.next()) {
    Rows rows;
    const auto take = [&](const char* name, std::vector<std::vector<float>>& out) {
      const TensorView& tensor = batch->tensor(name);
      std::vector<float> values;
      if (tensor.dtype == DType::kU8) {
        const auto bytes = test::download_examples<std::uint8_t>(devices[0], *batch, name);
        values.assign(bytes.begin(), bytes.end());
      } else {
        values = test::download_examples<float>(devices[0], *batch, name);
      }
      const auto one = static_cast<std::ptrdiff_t>(tensor.shape.without_front().elements());
      for (auto row = values.begin(); row != values.end(); row += one) out.emplace_back(row, row + one);
    };
    take("image", rows.images);
    take("label", rows.labels);
    all.push_back(std::move(rows));
  }
  return all;
}

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
}

std::vector<float> blend(const std::vector<float>& a, const std::vector<float>& b, double share) {
  std::vector<float> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.push_back(static_cast<float>(share * double{a[i]} + (1 - share) * double{b[i]}));
  }
  return result;
}

TEST(Mixing, MixupBlendsEachExampleWithItsPartnersOriginal) {
  for (const bool bytes : {false, true}) {
    const Operations before = bytes ? flip() : flip() | normalize(kColourMean, kColourStd);
    const auto plain = batches_of(samples().map(before | one_hot(10)).batch({.global = kGlobal}), 2);
    const auto mixed_batches =
        batches_of(samples().map(before | one_hot(10)).batch({.global = kGlobal}).map(mixup({.alpha = 0.4F})), 2);
    const auto number = static_cast<std::uint16_t>(bytes ? 2 : 3);
    ASSERT_EQ(plain.size(), mixed_batches.size());
    for (std::size_t sequence = 0; sequence < plain.size(); ++sequence) {
      const Rows& was = plain[sequence];
      const Rows& is = mixed_batches[sequence];
      const auto examples = static_cast<std::int64_t>(was.images.size());
      const Pairing pairing({.seed = 4, .epoch = sequence / 5, .step = sequence % 5}, number, examples);
      std::vector<bool> in_pair(was.images.size());
      for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
        const auto a = static_cast<std::size_t>(pairing[i].first), b = static_cast<std::size_t>(pairing[i].second);
        in_pair[a] = in_pair[b] = true;
        Philox random = pairing.random(i);
        random.uniform();  // whether at all
        const double share = draw_beta(double{0.4F}, random);
        const float tolerance = bytes ? 0.51F : 1e-5F;
        expect_close(is.images[a], blend(was.images[a], was.images[b], share), tolerance);
        expect_close(is.images[b], blend(was.images[b], was.images[a], share), tolerance);
        expect_close(is.labels[a], blend(was.labels[a], was.labels[b], share), 1e-6F);
        expect_close(is.labels[b], blend(was.labels[b], was.labels[a], share), 1e-6F);
      }
      for (std::size_t row = 0; row < in_pair.size(); ++row) {
        if (in_pair[row]) continue;
        EXPECT_EQ(is.images[row], was.images[row]) << "the odd one out stays";
      }
    }
  }
}

TEST(Mixing, CutmixExchangesOneRectangleAndBlendsLabelsByItsArea) {
  constexpr std::size_t kHeight = 12, kWidth = 10;
  for (const bool planes : {false, true}) {
    const Operations before =
        planes ? to_layout(ImageLayout::kChannelsFirst) : to_layout(ImageLayout::kChannelsLast);
    const auto plain = batches_of(samples().map(before | one_hot(10)).batch({.global = kGlobal}));
    const auto cut = batches_of(samples().map(before | one_hot(10)).batch({.global = kGlobal}).map(cutmix()));
    int exchanged = 0;
    for (std::size_t step = 0; step < plain.size(); ++step) {
      const auto examples = static_cast<std::int64_t>(plain[step].images.size());
      const Pairing pairing({.seed = 4, .epoch = 0, .step = step}, 2, examples);
      for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
        const auto a = static_cast<std::size_t>(pairing[i].first), b = static_cast<std::size_t>(pairing[i].second);
        // Where a pixel of a differs from before it is b's; those places are a full rectangle.
        std::size_t top = kHeight, bottom = 0, left = kWidth, right = 0, moved = 0;
        for (std::size_t y = 0; y < kHeight; ++y) {
          for (std::size_t x = 0; x < kWidth; ++x) {
            bool from_b = false;
            for (std::size_t c = 0; c < 3; ++c) {
              const std::size_t at = planes ? (c * kHeight + y) * kWidth + x : (y * kWidth + x) * 3 + c;
              const float was_a = plain[step].images[a][at], was_b = plain[step].images[b][at];
              from_b |= cut[step].images[a][at] != was_a;
              EXPECT_EQ(cut[step].images[a][at] + cut[step].images[b][at], was_a + was_b);
            }
            if (!from_b) continue;
            ++moved;
            top = std::min(top, y);
            bottom = std::max(bottom, y + 1);
            left = std::min(left, x);
            right = std::max(right, x + 1);
          }
        }
        EXPECT_EQ(moved, moved > 0 ? (bottom - top) * (right - left) : 0);
        exchanged += moved > 0 ? 1 : 0;
        const double share = 1 - static_cast<double>(moved) / (kHeight * kWidth);
        expect_close(cut[step].labels[a], blend(plain[step].labels[a], plain[step].labels[b], share), 1e-6F);
        expect_close(cut[step].labels[b], blend(plain[step].labels[b], plain[step].labels[a], share), 1e-6F);
      }
    }
    EXPECT_GT(exchanged, 15);
  }
}

TEST(Mixing, LeavesPairsAloneByItsProbability) {
  const auto plain = batches_of(samples().map(one_hot(10)).batch({.global = 53}));
  const auto never = batches_of(samples().map(one_hot(10)).batch({.global = 53}).map(mixup({.probability = 0})));
  EXPECT_EQ(never[0].images, plain[0].images);
  const auto half =
      batches_of(samples().map(one_hot(10)).batch({.global = 53}).map(mixup({.alpha = 5, .probability = 0.5F})));
  int same = 0;
  for (std::size_t i = 0; i < 53; ++i) same += half[0].images[i] == plain[0].images[i] ? 1 : 0;
  EXPECT_GT(same, 10);
  EXPECT_LT(same, 43);
}

TEST(Mixing, KeepsEachLabelASumOfOne) {
  for (const Rows& rows : batches_of(mixed(cutmix() | mixup(), flip()))) {
    for (const auto& label : rows.labels) {
      float sum = 0;
      for (const float value : label) sum += value;
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(Mixing, HandlesBatchesOfOneAndOfTheWholeEpoch) {
  for (const std::int64_t global : {1, 2, 53, 100}) {
    const Dataset dataset = samples().map(one_hot(10)).batch({.global = global}).map(mixup());
    const auto expected = cpu_digests_of(dataset, {.seed = 4, .threads = 1});
    EXPECT_EQ(digests_of(dataset, 8, {.seed = 4, .threads = 4}), expected) << global;
  }
}

TEST(Mixing, FailsWithTheErrorOfARecord) {
  // Label 9 is no class of nine.
  const Dataset dataset = Dataset::from(noise_images(53, 4, 4)).map(one_hot(9)).batch({.global = 6}).map(mixup());
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.threads = 2});
  EXPECT_TRUE(loader.next());
  try {
    loader.next();
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().record, 9U);
    EXPECT_THAT(error.what(), HasSubstr("label 9 where there are 9 classes"));
    EXPECT_THAT(error.what(), HasSubstr("one_hot"));
  }
}

std::string refusal_of_augmenting(const std::function<Dataset()>& make) {
  try {
    make().fields();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mixing, SaysWhereItBelongs) {
  EXPECT_THAT(refusal_of_augmenting([] { return samples().batch({.global = 4}).map(mixup()); }),
              AllOf(HasSubstr("field 'label' is int64"), HasSubstr("one_hot")));
  EXPECT_THAT(refusal_of_augmenting([] { return samples().map(one_hot(10) | mixup()).batch({.global = 4}); }),
              AllOf(HasSubstr("mixup"), HasSubstr("after .batch()")));
  EXPECT_THAT(refusal_of_augmenting([] { return samples().map(one_hot(10)).batch({.global = 4}).map(flip()); }),
              AllOf(HasSubstr("flip"), HasSubstr("stands after batch()")));
  EXPECT_THAT(
      refusal_of_augmenting([] { return samples().map(one_hot(10)).batch({.global = 4}).map(mixup() | flip()); }),
      HasSubstr("stands after batch()"));
  EXPECT_THAT(refusal_of_augmenting(
                  [] { return samples().map(flatten() | one_hot(10)).batch({.global = 4}).map(cutmix()); }),
              HasSubstr("three axes"));
  EXPECT_THAT(refusal_of_augmenting(
                  [] { return samples().map(one_hot(10)).batch({.global = 4}).map(mixup({.alpha = 0})); }),
              HasSubstr("alpha 0"));
  EXPECT_EQ(refusal_of_augmenting(
                [] { return samples().map(one_hot(10)).batch({.global = 4}).prefetch(1).map(mixup()); }),
            "no error");
  EXPECT_EQ(refusal_of_augmenting(
                [] { return samples().map(flatten() | one_hot(10)).batch({.global = 4}).map(mixup()); }),
            "no error");
}

TEST(Mixing, IsPartOfTheStreamsIdentityAndExplained) {
  const Dataset plain = samples().map(one_hot(10)).batch({.global = 4});
  EXPECT_NE(plain.fingerprint(), plain.map(mixup()).fingerprint());
  EXPECT_NE(plain.map(cutmix()).fingerprint(), plain.map(mixup()).fingerprint());
  EXPECT_THAT(plain.map(mixup({.alpha = 0.5F})).explain(),
              HasSubstr("mixup(alpha=0.5, probability=1)  [on batches]"));
}

TEST(Mixing, NeedsALabel) {
  const auto source = std::make_shared<test::FakeSource>(
      std::vector<std::vector<std::byte>>{test::encode_jpeg(test::make_picture(20, 24, 3, 1))});
  const Dataset dataset =
      Dataset::from(source).decode().map(random_resized_crop({.size = 8})).batch({.global = 5});
  EXPECT_THAT(refusal_of_augmenting([&] { return dataset.map(mixup()); }), HasSubstr("label"));
}

// Read from a tar by reader threads: see that pairs wait for rows that come late and in any order.
TEST(Mixing, WaitsForRowsThatReadersFetch) {
  TempFolder folder;
  const std::filesystem::path tar = folder.write("a.tar", test::pack_images(test::make_image_files()).finish());
  const Dataset dataset = Dataset::from(open_source(tar, Split::kTrain))
                              .decode()
                              .map(random_resized_crop({.size = 8}) | one_hot(3))
                              .batch({.global = 5})
                              .map(mixup() | cutmix());
  const auto expected = cpu_digests_of(dataset, {.seed = 4, .epochs = 3, .threads = 1, .reader_threads = 1});
  ASSERT_EQ(expected.size(), 9U);
  for (const int replicas : {1, 2, 3}) {
    EXPECT_EQ(digests_of(dataset, replicas, {.seed = 4, .epochs = 3, .threads = 4, .reader_threads = 6}),
              expected);
  }
}

}  // namespace
}  // namespace headrace
