// Masks and boxes that move with their image: they stay where they were in it.
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/random_resized_crop.h"
#include "headrace/tests/pipeline/property.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kHeight = 21, kWidth = 34;
constexpr std::uint64_t kRecords = 40;
const Along kBoth{.masks = {"mask"}, .boxes = {"boxes"}};

using FourNumbers = std::array<float, 4>;

// A rectangle of an image for each record, and its mirror image.
FourNumbers rectangle(std::uint64_t record) {
  Philox random({.seed = 5, .record = record});
  const auto left = static_cast<float>(random.below(kWidth - 12)),
             top = static_cast<float>(random.below(kHeight - 9));
  return {left, top, left + 4 + static_cast<float>(random.below(8)),
          top + 3 + static_cast<float>(random.below(6))};
}

template <typename Value>
Array array_of(Field field, const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {.field = std::move(field), .bytes = {bytes.begin(), bytes.end()}};
}

// Images whose first channel is the mask: noise, or 255 within the first box of the two, the second of which is
// none.
SourcePtr masked_images(bool noise, DType boxes_type = DType::kF32) {
  std::vector<std::uint8_t> images, masks;
  std::vector<float> boxes;
  std::vector<std::int64_t> whole_boxes;
  for (std::uint64_t record = 0; record < kRecords; ++record) {
    Philox random({.seed = 6, .record = record});
    const FourNumbers box = rectangle(record);
    for (std::int64_t y = 0; y < kHeight; ++y) {
      for (std::int64_t x = 0; x < kWidth; ++x) {
        const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
        const bool inside = fx >= box[0] && fx < box[2] && fy >= box[1] && fy < box[3];
        const auto value = static_cast<std::uint8_t>(noise ? random.next_u32() >> 24 : inside ? 255 : 0);
        masks.push_back(value);
        for (int channel = 0; channel < 3; ++channel) images.push_back(channel == 0 ? value : std::uint8_t{7});
      }
    }
    for (const float number : box) boxes.push_back(number);
    for (int i = 0; i < 4; ++i) boxes.push_back(0);
  }
  for (const float number : boxes) whole_boxes.push_back(static_cast<std::int64_t>(number));
  const Field field{.name = "boxes", .dtype = boxes_type, .shape = {2, 4}};
  return in_memory("masked", kRecords,
                   {array_of({.name = "image", .dtype = DType::kU8, .shape = {kHeight, kWidth, 3}}, images),
                    array_of({.name = "mask", .dtype = DType::kU8, .shape = {kHeight, kWidth, 1}}, masks),
                    boxes_type == DType::kI64 ? array_of(field, whole_boxes) : array_of(field, boxes)});
}

struct MovedSample {
  std::vector<std::uint8_t> image = {}, mask = {};
  std::vector<FourNumbers> boxes = {};
  std::int64_t height = 0, width = 0;
};

// All examples of `epochs` passes, in order.
std::vector<MovedSample> moved_samples(const Dataset& dataset, std::uint64_t epochs = 2) {
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset.batch({.global_batch = 8}), devices, {.seed = 4, .epochs = epochs});
  std::vector<MovedSample> all;
  while (const auto batch = loader.next()) {
    const Shape shape = batch->tensor("mask").shape;
    const auto images = download_examples<std::uint8_t>(devices[0], *batch, "image");
    const auto masks = download_examples<std::uint8_t>(devices[0], *batch, "mask");
    const auto boxes = download_examples<float>(devices[0], *batch, "boxes");
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]);
    const std::size_t count = masks.size() / pixels, of_each = boxes.size() / count / 4;
    for (std::size_t i = 0; i < count; ++i) {
      MovedSample sample{.height = shape[1], .width = shape[2]};
      sample.image.assign(images.begin() + static_cast<std::ptrdiff_t>(i * pixels * 3),
                          images.begin() + static_cast<std::ptrdiff_t>((i + 1) * pixels * 3));
      sample.mask.assign(masks.begin() + static_cast<std::ptrdiff_t>(i * pixels),
                         masks.begin() + static_cast<std::ptrdiff_t>((i + 1) * pixels));
      for (std::size_t box = 0; box < of_each; ++box) {
        FourNumbers numbers{};
        std::memcpy(numbers.data(), boxes.data() + (i * of_each + box) * 4, sizeof numbers);
        sample.boxes.push_back(numbers);
      }
      all.push_back(std::move(sample));
    }
  }
  return all;
}

std::vector<Operations> without_resampling() {
  return {flip(),          alternating_flip(),
          vertical_flip(), center_crop(13),
          pad_crop(20, 6), pad_crop(21, 5, Padding::kReflect),
          pad_crop(16, 0), pad_crop(20, 6) | flip() | center_crop(11) | vertical_flip()};
}

TEST(MovedAlong, AMaskStaysEqualToTheChannelThatItIs) {
  for (const Operations& chain : without_resampling()) {
    const auto samples = moved_samples(Dataset::from(masked_images(/*noise=*/true)).map(chain.along(kBoth)));
    ASSERT_EQ(samples.size(), 2 * kRecords);
    for (const MovedSample& sample : samples) {
      for (std::size_t pixel = 0; pixel < sample.mask.size(); ++pixel) {
        ASSERT_EQ(sample.mask[pixel], sample.image[3 * pixel])
            << describe(chain.list().front()) << " pixel " << pixel;
      }
    }
  }
}

// The smallest box around what is set; none if nothing is.
std::optional<FourNumbers> box_around(const MovedSample& sample) {
  std::optional<FourNumbers> box;
  for (std::int64_t y = 0; y < sample.height; ++y) {
    for (std::int64_t x = 0; x < sample.width; ++x) {
      if (sample.mask[static_cast<std::size_t>(y * sample.width + x)] == 0) continue;
      const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
      if (!box) box = FourNumbers{fx, fy, fx + 1, fy + 1};
      *box = {std::min((*box)[0], fx), std::min((*box)[1], fy), std::max((*box)[2], fx + 1),
              std::max((*box)[3], fy + 1)};
    }
  }
  return box;
}

TEST(MovedAlong, AMaskTurnsToTheNearestPixelAsItsImageDoes) {
  const RandomAffine wild{.degrees = {-180, 180},
                          .translate = {0.2F, 0.2F},
                          .scale = {0.6F, 1.5F},
                          .shear = {0, 20},
                          .probability = 0.8F};
  for (const Operations& chain : {random_rotation({.degrees = {-90, 90}}), random_affine(wild)}) {
    for (const MovedSample& sample :
         moved_samples(Dataset::from(masked_images(/*noise=*/true)).map(chain.along(kBoth)))) {
      for (std::size_t pixel = 0; pixel < sample.mask.size(); ++pixel) {
        ASSERT_EQ(sample.mask[pixel], sample.image[3 * pixel]) << describe(chain.list().front());
      }
    }
  }
}

// A turned rectangle has the corners of its box at its sides; a map says where.
TEST(MovedAlong, ABoxStaysAroundItsTurnedRectangle) {
  for (const float degrees : {0.0F, 30.0F, 90.0F, 137.0F}) {
    const Operations turn = random_rotation({.degrees = {degrees, degrees}}).along(kBoth);
    const Dataset base = Dataset::from(masked_images(/*noise=*/false));
    const auto before = moved_samples(base, 1), after = moved_samples(base.map(turn), 1);
    const double radians = double{degrees} * std::numbers::pi / 180;
    for (std::size_t i = 0; i < kRecords; ++i) {
      const FourNumbers box = before[i].boxes[0];
      FourNumbers around{99, 99, -99, -99};
      for (const double x : {box[0] - 17.0, box[2] - 17.0}) {
        for (const double y : {box[1] - 10.5, box[3] - 10.5}) {
          const auto there_x = static_cast<float>(17 + x * std::cos(radians) + y * std::sin(radians));
          const auto there_y = static_cast<float>(10.5 - x * std::sin(radians) + y * std::cos(radians));
          around = {std::min(around[0], there_x), std::min(around[1], there_y), std::max(around[2], there_x),
                    std::max(around[3], there_y)};
        }
      }
      for (std::size_t side = 0; side < 4; ++side) {
        around[side] = std::clamp(around[side], 0.0F, static_cast<float>(side % 2 == 0 ? kWidth : kHeight));
      }
      if (around[2] <= around[0] || around[3] <= around[1]) around = {};
      for (std::size_t side = 0; side < 4; ++side) EXPECT_NEAR(after[i].boxes[0][side], around[side], 1e-4);
      EXPECT_EQ(after[i].boxes[1], FourNumbers{}) << "no box stays none";
      const std::optional<FourNumbers> seen = box_around(after[i]);
      if (!seen) continue;
      EXPECT_GE((*seen)[0], around[0] - 1);
      EXPECT_GE((*seen)[1], around[1] - 1);
      EXPECT_LE((*seen)[2], around[2] + 1);
      EXPECT_LE((*seen)[3], around[3] + 1);
    }
  }
}

TEST(MovedAlong, ABoxStaysAroundItsRectangle) {
  std::vector<std::pair<Operations, float>> chains;
  for (const Operations& chain : without_resampling()) {
    const bool reflects = describe(chain.list().front()).find("reflect") != std::string::npos;
    if (!reflects) chains.emplace_back(chain, 0.0F);
  }
  // What is resized is exact to a pixel of the result, or of the enlarged input.
  chains.emplace_back(resize(42), 2.0F);
  chains.emplace_back(resize(11, 40), 1.25F);
  chains.emplace_back(resize(24) | center_crop(20) | flip(), 1.25F);
  chains.emplace_back(random_resized_crop({.size = 18, .area = {0.6F, 1}}) | flip(), 1.25F);
  for (const auto& [chain, tolerance] : chains) {
    int seen = 0, lost = 0;
    for (const MovedSample& sample :
         moved_samples(Dataset::from(masked_images(/*noise=*/false)).map(chain.along(kBoth)))) {
      const FourNumbers box = sample.boxes[0];
      EXPECT_EQ(sample.boxes[1], FourNumbers{}) << "no box stays none";
      const std::optional<FourNumbers> around = box_around(sample);
      if (!around) {
        ++lost;
        EXPECT_LE(box[2] - box[0] < box[3] - box[1] ? box[2] - box[0] : box[3] - box[1], tolerance);
        continue;
      }
      ++seen;
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(box[i], (*around)[i], tolerance) << describe(chain.list().front()) << " side " << i;
      }
    }
    EXPECT_GT(seen, 40) << describe(chain.list().front());
    (void)lost;
  }
}

TEST(MovedAlong, ResizesMasksToTheNearestNumberAsTorchvisionDoes) {
  const Dataset base = Dataset::from(masked_images(/*noise=*/true));
  const auto before = moved_samples(base, 1);
  const auto after = moved_samples(base.map(resize(13, 50).along(kBoth)), 1);
  for (std::size_t i = 0; i < kRecords; ++i) {
    for (std::int64_t y = 0; y < 13; ++y) {
      for (std::int64_t x = 0; x < 50; ++x) {
        const std::int64_t from = y * kHeight / 13 * kWidth + x * kWidth / 50;
        ASSERT_EQ(after[i].mask[static_cast<std::size_t>(y * 50 + x)],
                  before[i].mask[static_cast<std::size_t>(from)]);
      }
    }
    const FourNumbers box = before[i].boxes[0];
    EXPECT_FLOAT_EQ(after[i].boxes[0][0], box[0] * 50 / 34);
    EXPECT_FLOAT_EQ(after[i].boxes[0][3], box[3] * 13 / 21);
  }
}

TEST(MovedAlong, RandomResizedCropsShareTheirWindow) {
  const RandomResizedCrop options{.size = 15};
  const Dataset base = Dataset::from(masked_images(/*noise=*/true));
  const auto before = moved_samples(base, 1);
  const auto after = moved_samples(base.map(random_resized_crop(options).along(kBoth)), 1);
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    Philox random({.seed = 4, .epoch = 0, .record = i, .operation = 0});
    const ImageWindow window = draw_window(options, {.height = kHeight, .width = kWidth}, random);
    for (std::int64_t y = 0; y < 15; ++y) {
      for (std::int64_t x = 0; x < 15; ++x) {
        const std::int64_t row = window.top + y * window.height / 15, column = window.left + x * window.width / 15;
        ASSERT_EQ(after[i].mask[static_cast<std::size_t>(y * 15 + x)],
                  before[i].mask[static_cast<std::size_t>(row * kWidth + column)]);
      }
    }
  }
}

TEST(MovedAlong, TheImageHasTheBitsThatItHasAlone) {
  const Dataset base = Dataset::from(masked_images(/*noise=*/true));
  for (const Operations& chain :
       {pad_crop(20, 6) | flip() | center_crop(11),
        vertical_flip() | random_affine({.degrees = {0, 50}, .interpolation = Interpolation::kBilinear}),
        resize(30) | center_crop(20) | flip(), random_resized_crop({.size = 15}) | flip(),
        resize(9, 7) | alternating_flip()}) {
    const auto alone = [&] {
      DeviceGroup devices = test_devices(1);
      Loader loader(base.map(chain | to_layout(ImageLayout::kChannelsLast)).batch({.global_batch = 8}), devices,
                    {.seed = 4, .epochs = 2});
      std::vector<std::uint8_t> pixels;
      while (const auto batch = loader.next()) {
        const auto more = download_examples<std::uint8_t>(devices[0], *batch, "image");
        pixels.insert(pixels.end(), more.begin(), more.end());
      }
      return pixels;
    }();
    std::vector<std::uint8_t> along;
    for (const MovedSample& sample : moved_samples(base.map(chain.along(kBoth)))) {
      along.insert(along.end(), sample.image.begin(), sample.image.end());
    }
    EXPECT_EQ(along, alone) << describe(chain.list().front());
  }
}

TEST(MovedAlong, GivesOneStream) {
  expect_one_stream(
      Dataset::from(masked_images(/*noise=*/true))
          .shuffle({.seed = 2})
          .map((random_resized_crop({.size = 12}) | flip() | pad_crop(12, 2) | normalize({0.5F}, {0.5F}))
                   .along(kBoth))
          .batch({.global_batch = 9}));
}

TEST(MovedAlong, BoxesOfWhichNothingIsLeftAreZerosOrLeaveTheirPlace) {
  const std::vector<float> boxes{0, 0, 2, 2, 9, 8, 20, 12, 30, 0, 34, 3, 12, 1, 14, 20};
  const std::vector<std::uint8_t> image(kHeight * kWidth * 3);
  const std::vector<std::int64_t> labels{1, 2, 3, 4};
  const auto after = [&]<typename T>(LostBoxes lost, const std::string& field, std::vector<std::string> rows, T) {
    const SourcePtr source =
        in_memory("boxes", 1,
                  {array_of({.name = "image", .dtype = DType::kU8, .shape = {kHeight, kWidth, 3}}, image),
                   array_of({.name = "boxes", .dtype = DType::kF32, .shape = {4, 4}}, boxes),
                   array_of({.name = "labels", .dtype = DType::kI64, .shape = {4}}, labels)});
    const Along along{.boxes = {"boxes"}, .lost = lost, .with_boxes = std::move(rows)};
    const Dataset dataset = Dataset::from(source).map(center_crop(13).along(along)).batch({.global_batch = 1});
    DeviceGroup devices = test_devices(1);
    Loader loader(dataset, devices);
    return download_examples<T>(devices[0], *loader.next(), field);
  };
  // The window begins at (10, 4).
  const std::vector<float> second{0, 4, 10, 8}, fourth{2, 0, 4, 13}, zeros(4, 0.0F);
  const auto joined = [](std::initializer_list<std::vector<float>> rows) {
    std::vector<float> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  EXPECT_EQ(after(LostBoxes::kZero, "boxes", {}, 0.0F), joined({zeros, second, zeros, fourth}));
  EXPECT_EQ(after(LostBoxes::kDrop, "boxes", {"labels"}, 0.0F), joined({second, fourth, zeros, zeros}));
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(after(LostBoxes::kZero, "labels", {}, std::int64_t{}), labels);
  EXPECT_EQ(after(LostBoxes::kDrop, "labels", {"labels"}, std::int64_t{}), (Numbers{2, 4, 0, 0}));
  EXPECT_EQ(after(LostBoxes::kDrop, "labels", {"boxes"}, std::int64_t{}), labels);
  const auto refused = [&](LostBoxes lost, std::vector<std::string> rows) {
    try {
      after(lost, "boxes", std::move(rows), 0.0F);
    } catch (const ConfigError& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(refused(LostBoxes::kDrop, {}), HasSubstr("may have a row for each box"));
  EXPECT_THAT(refused(LostBoxes::kDrop, {"image"}), HasSubstr("has no row for each box"));
  EXPECT_THAT(refused(LostBoxes::kZero, {"labels"}), HasSubstr("with_boxes is for lost_boxes = drop"));
}

TEST(MovedAlong, BoxesMayBeIntegersAndBecomeFloats) {
  const Dataset whole = Dataset::from(masked_images(true, DType::kI64)).map(resize(11, 17).along(kBoth));
  EXPECT_EQ(whole.fields()[2], (Field{.name = "boxes", .dtype = DType::kF32, .shape = {2, 4}}));
  const auto floats = moved_samples(Dataset::from(masked_images(true)).map(resize(11, 17).along(kBoth)), 1);
  const auto integers = moved_samples(whole, 1);
  for (std::size_t i = 0; i < kRecords; ++i) EXPECT_EQ(integers[i].boxes, floats[i].boxes);
}

// A palette's indices, photographs of any size, and as many boxes as there are.
TEST(MovedAlong, FromAnArchiveToPaddedBatches) {
  const TempFolder folder;
  TarBuilder tar;
  for (int i = 0; i < 6; ++i) {
    const std::string key = std::to_string(i);
    const Picture grey = make_picture(20 + i, 24, 1, static_cast<std::uint64_t>(i));
    tar.add(key + ".png", encode_png(grey))
        .add(key + ".seg.png", encode_png(grey))
        .add(key + ".cls", to_bytes("1"));
    std::string boxes = "[0, 0, 24, " + std::to_string(20 + i) + "]";
    for (int more = 0; more < i % 3; ++more) boxes += more == 0 ? ", [2, 2, 5.5, 6]" : ", [0, 0, 3, 6]";
    tar.add(key + ".json", to_bytes("{\"boxes\": [" + boxes + "]}"));
  }
  const SourcePtr source = open_source(folder.write("a.tar", tar.finish()), Split::kTrain,
                                       {.columns = {.columns = {"mask=seg.png:mask", "boxes=json.boxes:list"}}});
  const auto lengths_of = [&](DeviceGroup& devices, const Along& along) {
    const Operations chain = (center_crop(16) | flip()).along(along);
    Loader loader(Dataset::from(source).decode().map(chain).padded_batch({.global_batch = 6}), devices);
    return download_examples<std::int64_t>(devices[0], *loader.next(), "boxes_length");
  };
  const Dataset dataset = Dataset::from(source)
                              .decode()
                              .map((center_crop(16) | flip()).along(kBoth))
                              .padded_batch({.global_batch = 6});
  DeviceGroup devices = test_devices(1);
  Along dropping = kBoth;
  dropping.lost = LostBoxes::kDrop;
  dropping.with_boxes = {"boxes"};
  EXPECT_EQ(lengths_of(devices, dropping), (std::vector<std::int64_t>{1, 2, 2, 1, 2, 2}));
  Loader loader(dataset, devices);
  const auto batch = loader.next();
  EXPECT_EQ(batch->tensor("mask").shape, (Shape{6, 16, 16, 1}));
  EXPECT_EQ(batch->tensor("boxes").shape, (Shape{6, 3, 4}));
  EXPECT_EQ(download_examples<std::int64_t>(devices[0], *batch, "boxes_length"),
            (std::vector<std::int64_t>{1, 2, 3, 1, 2, 3}));
  const auto images = download_examples<std::uint8_t>(devices[0], *batch, "image");
  const auto masks = download_examples<std::uint8_t>(devices[0], *batch, "mask");
  for (std::size_t i = 0; i < masks.size(); ++i) ASSERT_EQ(masks[i], images[3 * i]);
  const auto boxes = download_examples<float>(devices[0], *batch, "boxes");
  EXPECT_EQ(std::vector<float>(boxes.begin(), boxes.begin() + 12),
            (std::vector<float>{0, 0, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MovedAlong, AMaskOfAPaletteKeepsItsIndices) {
  const TempFolder folder;
  Picture shown;
  const Bytes palette = encode_palette_png(make_picture(9, 8, 3, 1), shown);
  TarBuilder tar;
  tar.add("a.png", palette).add("a.seg.png", palette).add("a.cls", to_bytes("0"));
  const auto path = folder.write("a.tar", tar.finish());
  EXPECT_THROW(web_dataset(path, {.members = {"seg.png:mask", "seg.png"}}), ConfigError) << "two of one name";
  const SourcePtr one = web_dataset(path, {.members = {"m=seg.png:mask"}});
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(one).decode({.height = 9, .width = 8}).batch({.global_batch = 1}), devices);
  const auto batch = loader.next();
  const auto indices = download_examples<std::uint8_t>(devices[0], *batch, "m");
  const auto colours = download_examples<std::uint8_t>(devices[0], *batch, "image");
  ASSERT_EQ(indices.size(), 72U);
  std::map<std::array<std::uint8_t, 3>, std::uint8_t> index_of;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::array<std::uint8_t, 3> colour{colours[3 * i], colours[3 * i + 1], colours[3 * i + 2]};
    EXPECT_EQ(index_of.try_emplace(colour, indices[i]).first->second, indices[i]) << "one index for a colour";
  }
  EXPECT_GT(index_of.size(), 4U);
  EXPECT_NE(indices, std::vector<std::uint8_t>(indices.size(), indices[0]));
}

std::string fault_of_mask(const Bytes& mask) {
  const TempFolder folder;
  TarBuilder tar;
  tar.add("a.png", encode_png(make_picture(9, 8, 3, 1))).add("a.seg.png", mask).add("a.cls", to_bytes("0"));
  const SourcePtr source = web_dataset(folder.write("a.tar", tar.finish()), {.members = {"mask=seg.png:mask"}});
  DeviceGroup devices = test_devices(1);
  return message_of<DataError>([&] {
    Loader loader(
        Dataset::from(source).decode().map(center_crop(4).along({.masks = {"mask"}})).batch({.global_batch = 1}),
        devices);
    loader.next();
  });
}

TEST(MovedAlong, AMaskThatIsNoneIsABadRecord) {
  EXPECT_EQ(fault_of_mask(encode_png(make_picture(9, 8, 1, 1))), "");
  EXPECT_THAT(fault_of_mask(encode_png(make_picture(9, 8, 3, 1))),
              HasSubstr("a PNG with colours, alpha or 16 bits"));
  EXPECT_THAT(fault_of_mask(encode_png(make_picture(9, 8, 1, 1), {.bits = 16})), HasSubstr("is no mask"));
  EXPECT_THAT(fault_of_mask(encode_jpeg(make_picture(9, 8, 1, 1))), HasSubstr("a mask is a PNG"));
  EXPECT_THAT(fault_of_mask(encode_png(make_picture(8, 9, 1, 1))),
              HasSubstr("the mask 'mask' has 8 x 9 pixels and its image 9 x 8"));
}

std::string refusal_to_move(const Operations& chain, const Along& along) {
  try {
    return Dataset::from(masked_images(true)).map(chain.along(along)).batch({.global_batch = 4}).explain();
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(MovedAlong, RefusesWhatItCannotMove) {
  EXPECT_THAT(refusal_to_move(flip(), kBoth), HasSubstr("masks=[mask], boxes=[boxes], lost_boxes=zero"));
  EXPECT_THAT(refusal_to_move(flip(), {.masks = {"seg"}}), HasSubstr("'seg'"));
  EXPECT_THAT(refusal_to_move(flip(), {.masks = {"image"}}), HasSubstr("field 'image' is moved twice"));
  EXPECT_THAT(refusal_to_move(flip(), {.masks = {"mask", "mask"}}), HasSubstr("field 'mask' is moved twice"));
  EXPECT_THAT(refusal_to_move(flip(), {.masks = {"boxes"}}), HasSubstr("field 'boxes' float32 (2, 4) is no mask"));
  EXPECT_THAT(refusal_to_move(flip(), {.boxes = {"mask"}}), HasSubstr("holds no boxes"));
  EXPECT_THAT(refusal_to_move(normalize({0}, {1}), kBoth), HasSubstr("no operation of the chain moves pixels"));
}

}  // namespace
}  // namespace headrace::test
