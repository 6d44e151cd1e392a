// PyTorch's tutorial "Training a classifier", its steps in its order, with Headrace's trainer in the place of
// PyTorch. On CIFAR-10 as the tutorial, in any form that Headrace reads; on all GPUs, else one CPU replica;
// HEADRACE_DEVICES=cpu:8 says otherwise.
//   example_pytorch_classifier DATA
//
// Data: cifar10
// Prints: ^Number of devices: {R}$
// Prints: ^\[2, +300\] loss: [0-9.]+$
// Prints: ^Finished Training$
// Prints: ^Predicted: +[0-9a-z]+ .*$
// Prints: ^Accuracy of the network on the 400 test images: ([3-9][0-9]|100) %$
// Prints: ^Accuracy for class: .* is [0-9.]+ %$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/checkpoints.h>
#include <headrace/train/strategy.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace headrace;

namespace {

constexpr std::int64_t kBatchSize = 4;

Node net(Graph& g) {
  Node x = g.conv(g.input("image", {32, 32, 3}), 6,
                  {.kernel = 5, .padding = ConvPadding::kValid, .activation = Activation::kRelu});
  x = g.conv(g.max_pool(x, 2), 16, {.kernel = 5, .padding = ConvPadding::kValid, .activation = Activation::kRelu});
  x = g.dense(g.flatten(g.max_pool(x, 2)), 120, {.activation = Activation::kRelu});
  x = g.dense(x, 84, {.activation = Activation::kRelu});
  return g.dense(x, 10);
}

// Prints the mean loss of the last steps.
Callback print_loss(std::uint64_t every) {
  return {.on_step =
              [steps = std::uint64_t{0}, total = 0.0](const StepReport& report, FitControl&) mutable {
                if (report.step < steps) steps = 0, total = 0;
                const double sum = report.loss * static_cast<double>(report.step);
                std::printf("[%d, %5d] loss: %.3f\n", report.epoch + 1, static_cast<int>(report.step),
                            (sum - total) / static_cast<double>(report.step - steps));
                steps = report.step, total = sum;
              },
          .every_steps = every};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::puts("skipped: name CIFAR-10 as the argument");
    return 77;
  }
  // 1. Load and normalize CIFAR-10
  const auto load = [&](Split split) {
    const SourcePtr source = open_source(argv[1], split);
    const bool is_encoded = source->info().fields[0].encoding == Encoding::kImage;
    const Dataset images =
        is_encoded ? Dataset::from(source).decode({.height = 32, .width = 32}) : Dataset::from(source);
    return images.cache(memory()).map(normalize({0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}));
  };
  const Dataset trainset = load(Split::kTrain), testset = load(Split::kTest);
  const Dataset trainloader = trainset.shuffle().batch({.global_batch = kBatchSize});
  std::vector<std::string> classes = trainset.source()->info().classes;
  for (std::size_t i = classes.size(); i < 10; ++i) classes.push_back(std::to_string(i));  // the data name none

  // 2. Define a convolutional neural network
  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  Model model = strategy.build(net);

  // 3. Define a loss function and optimizer
  model.compile({.optimizer = sgd(0.001F, {.momentum = 0.9F}),
                 .loss = sparse_categorical_crossentropy(),
                 .metrics = {accuracy(), confusion_matrix()}});

  // 4. Train the network
  model.fit(trainloader, {.epochs = 2, .callbacks = {print_loss(400)}, .verbose = 0});
  std::puts("Finished Training");
  save_model(model, "cifar_net.safetensors");

  // 5. Test the network on the test data
  Model restored = restore_model(strategy, "cifar_net.safetensors");
  const Predictions outputs = restored.predict(testset.take(kBatchSize).batch({.global_batch = kBatchSize}));
  std::printf("Predicted: ");
  for (auto row = outputs.values.begin(); row != outputs.values.end(); row += 10) {
    std::printf(" %-5s", classes[static_cast<std::size_t>(std::max_element(row, row + 10) - row)].c_str());
  }
  const Evaluation result = restored.evaluate(testset.batch({.global_batch = 256}));
  std::printf("\nAccuracy of the network on the %d test images: %.0f %%\n", static_cast<int>(testset.size()),
              100 * result.accuracy);
  for (const MetricValue& metric : result.metrics) {
    for (std::size_t i = 0; !metric.is_number() && i < classes.size(); ++i) {
      const double* row = &metric.values[i * classes.size()];
      const double count = std::accumulate(row, row + classes.size(), 0.0);
      if (count > 0)
        std::printf("Accuracy for class: %-5s is %.1f %%\n", classes[i].c_str(), 100 * row[i] / count);
    }
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
