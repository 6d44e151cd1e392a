// DALI's ResNet-50 input pipeline (its example for ImageNet), function by function. DATA is a folder or archive of
// images, with train and val parts or without. On all GPUs, else one CPU replica; HEADRACE_DEVICES=cuda:0,1 says
// otherwise.
//   example_dali_resnet_pipeline DATA
//
// Data: cifar10
// Prints: ^training: 2000 images, [0-9]+ images/s, {R} devices$
// Prints: ^validation: 400 images, [0-9]+ images/s, {R} devices$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/dataset.h>
#include <headrace/pipeline/loader.h>
#include <headrace/pipeline/sources.h>

#include <chrono>
#include <cstdio>

using namespace headrace;

namespace {

Dataset create_dali_pipeline(const char* data, int crop, int size, std::int64_t batch_size, bool is_training) {
  const SourcePtr source = open_source(data, is_training ? Split::kTrain : Split::kTest);  // fn.readers.file
  const bool is_encoded = source->info().fields[0].encoding == Encoding::kImage;
  Dataset images = Dataset::from(source);
  if (is_training) images = images.shuffle();  // random_shuffle=True
  if (is_encoded) images = images.decode();
  // fn.decoders.image_random_crop, which decodes no more than the crop, fn.resize and a coin flip; or
  // mode="not_smaller"
  const Operations pixels =
      is_training ? random_resized_crop({.size = crop, .area = {0.1F, 1}, .ratio = {0.8F, 1.25F}}) | flip()
                  : resize(size) | center_crop(crop);
  // fn.crop_mirror_normalize(output_layout="CHW")
  return images
      .map(pixels | normalize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}) |
           to_layout(ImageLayout::kChannelsFirst))
      .batch({.global_batch = batch_size});
}

void run_epoch(const char* name, const Dataset& pipeline, DeviceGroup& devices) {
  const auto began = std::chrono::steady_clock::now();
  Loader loader(pipeline, devices, {.epochs = 1});
  std::int64_t examples = 0;
  for (bool is_over = false; !is_over;) {
    for (int replica = 0; replica < devices.size(); ++replica) {
      const auto batch =
          loader.next(replica);  // in the device's memory: batch->tensor("image"), batch->tensor("label")
      is_over = !batch;
      if (batch) examples += batch->examples();
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf("%s: %d images, %.0f images/s, %d devices\n", name, static_cast<int>(examples),
              static_cast<double>(examples) / seconds.count(), devices.size());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::puts("skipped: name images as the argument");
    return 77;
  }
  DeviceGroup devices = open_devices("auto", DeviceNeed::kMemory);
  run_epoch("training", create_dali_pipeline(argv[1], 224, 256, 64, true), devices);
  run_epoch("validation", create_dali_pipeline(argv[1], 224, 256, 64, false), devices);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
