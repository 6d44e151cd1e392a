// A folder of images, every fifth of them damaged, and two pipelines over it.
#pragma once

#include <string>

#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/damage.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {

inline Bytes image_of(int number) {
  const Picture picture = make_picture(64 + number % 7, 80, 3, static_cast<std::uint64_t>(number));
  switch (number % 5) {
    case 0: return encode_png(picture);
    case 1: return encode_jpeg(picture, {.quality = 75, .progressive = true});
    case 2: return encode_jpeg(picture, {.quality = 75, .restart_rows = 1});
    default: return encode_jpeg(picture, {.quality = 75});
  }
}

// Every fifth is damaged somewhere: cut, flipped, or zeros at its end.
inline Bytes damaged_image(int number) {
  const Bytes image = image_of(number);
  const auto at = static_cast<std::size_t>(number);
  if (number % 5 != number / 5 % 5) return image;
  switch (number / 25 % 4) {
    case 0: return cut_to_percent(image, 40 + at % 60);
    case 1: return with_zero_tail(image, 70 + at % 30);
    case 2: return with_flipped_bit(image, image.size() * 8 * (60 + at % 40) / 100);
    default: return cut_to_percent(image, 99);
  }
}

inline Dataset train(const SourcePtr& source, const std::shared_ptr<SampleCache>& cache = nullptr) {
  Dataset dataset = Dataset::from(source).decode();
  if (cache != nullptr) dataset = dataset.cache(cache);
  return dataset.shuffle({.seed = 5}).map(random_resized_crop({.size = 16}) | flip()).batch({.global_batch = 16});
}

// Only a strip in the midst of each image is wanted.
inline Dataset eval(const SourcePtr& source, const std::shared_ptr<SampleCache>& cache = nullptr) {
  Dataset dataset = Dataset::from(source).decode();
  if (cache != nullptr) dataset = dataset.cache(cache);
  return dataset.map(resize(40) | center_crop(8)).batch({.global_batch = 16});
}

inline LoaderOptions options(OnError on_error, int threads, std::uint64_t epochs) {
  return {.seed = 3, .epochs = epochs, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 1}};
}

struct DamagedFolder {
  static constexpr int kImages = 300;

  DamagedFolder() {
    for (int i = 0; i < kImages; ++i) {
      folder.write((i < kImages / 2 ? "cat/" : "dog/") + std::to_string(1000 + i) + ".img.jpg", damaged_image(i));
    }
  }
  SourcePtr source() const { return image_folder(folder.path(), Split::kTrain); }

  TempFolder folder;
};

}  // namespace headrace::test
