// PyTorch's ImageNet example (examples/imagenet/main.py), its steps with the settings of the example, with
// Headrace in the place of PyTorch. DATA is a folder or archive of images with train and val parts; run again, it
// goes on from the newest checkpoint. On all GPUs, else one CPU replica; HEADRACE_DEVICES=cuda:0,1 says otherwise.
//   example_pytorch_imagenet DATA [EPOCHS] [SIZE]
//
// Data: cifar10
// Arguments: 1 32
// Prints: ^=> creating model 'resnet18_imagenet'$
// Prints: ^Epoch 1/1
// Prints: ^ \* accuracy [0-9.]+ top_5 [0-9.]+$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/checkpoints.h>
#include <headrace/train/nets.h>
#include <headrace/train/strategy.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace headrace;

namespace {

constexpr std::int64_t kGlobalBatch = 256;  // of all devices together
constexpr float kRate = 0.1F;

// Images of any size as their pixels; encoded ones are decoded, in part where only a part is used.
Dataset images(const SourcePtr& source) {
  const Dataset all = Dataset::from(source);
  return source->info().fields[0].encoding == Encoding::kImage ? all.decode() : all;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::puts("skipped: name images as the argument");
    return 77;
  }
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 90, size = argc > 3 ? std::atoi(argv[3]) : 224;

  // Data loading code
  const SourcePtr train_source = open_source(argv[1], Split::kTrain);
  const Operations normalized = normalize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F});
  const Dataset train_loader = images(train_source)
                                   .shuffle()
                                   .map(random_resized_crop({.size = size}) | flip() | normalized)
                                   .batch({.global_batch = kGlobalBatch});
  const Dataset val_loader = images(open_source(argv[1], Split::kTest))
                                 .map(resize(size * 256 / 224) | center_crop(size) | normalized)
                                 .batch({.global_batch = kGlobalBatch});

  std::puts("=> creating model 'resnet18_imagenet'");
  const int classes = std::max(static_cast<int>(train_source->info().classes.size()), 10);
  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  Model model = strategy.build(net_named("resnet18_imagenet", classes), {.fields = train_loader.fields()});

  // define loss function (criterion), optimizer, and learning rate scheduler: decayed by 10 every 30 epochs
  const std::uint64_t steps = train_loader.steps_per_epoch();
  const Schedule rate =
      Schedule::piecewise({.rates = {kRate, kRate / 10, kRate / 100}, .boundaries = {30 * steps, 60 * steps}});
  model.compile({.optimizer = sgd(rate, {.momentum = 0.9F, .weight_decay = 1e-4F}),
                 .loss = sparse_categorical_crossentropy(),
                 .metrics = {accuracy(), top_k(5)}});

  // train, evaluate on the validation set, remember best acc@1 and save checkpoints
  model.fit(train_loader, {.epochs = epochs,
                           .validation = val_loader,
                           .verbose = 2,
                           .checkpoints = CheckpointOptions{.folder = "checkpoints", .best = "val_accuracy"},
                           .resume = true});
  std::printf(" *");
  for (const MetricValue& metric : model.evaluate(val_loader).metrics) {
    std::printf(" %s %.3f", metric.name.c_str(), 100 * metric.number());
  }
  std::printf("\n");
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
