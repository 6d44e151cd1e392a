// A convolutional net on CIFAR-10 with compile and fit, eight times 64 images a step. DATA is CIFAR-10 in any form
// that Headrace reads: its binary version, or JPEGs in folders or archives; without it, what HEADRACE_CIFAR10
// names.
//   example_cifar_cnn [DATA [EPOCHS]]
//
// Data: cifar10
// Prints: ^Number of devices: {R}$
// Prints: ^conv .* 896
// Prints: ^Epoch 4/4$
// Prints: ^4/4 - .*/step - loss: [0-9.]+ - accuracy: [0-9.]+ - val_loss: [0-9.]+ - val_accuracy: 0\.[3-9]
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/strategy.h>

#include <cstdio>
#include <cstdlib>

using namespace headrace;

Node cnn(Graph& g) {
  Node x = g.conv(g.input("image", {32, 32, 3}), 32, {.activation = Activation::kRelu});
  x = g.conv(g.max_pool(x, 2), 64, {.activation = Activation::kRelu});
  x = g.conv(g.max_pool(x, 2), 64, {.activation = Activation::kRelu});
  x = g.dense(g.dropout(g.flatten(x), 0.2F), 64, {.activation = Activation::kRelu});
  return g.dense(x, 10);
}

// JPEGs are decoded once and kept; the binary version's images are pixels already.
Dataset images(const char* data, Split split) {
  const SourcePtr source = open_source(data, split);
  const Dataset all = Dataset::from(source);
  return source->info().fields[0].encoding == Encoding::kImage
             ? all.decode({.height = 32, .width = 32}).cache(memory())
             : all;
}

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : std::getenv("HEADRACE_CIFAR10");
  if (data == nullptr) {
    std::puts("skipped: no CIFAR-10 (name it as the argument, or in HEADRACE_CIFAR10)");
    return 77;
  }
  const Operations normal = normalize({0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F});
  const Dataset train =
      images(data, Split::kTrain).shuffle().map(pad_crop(32, 4) | flip() | normal).batch({.global_batch = 512});
  const Dataset test = images(data, Split::kTest).map(normal).batch({.global_batch = 512});

  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  Model model = strategy.build(cnn);
  std::puts(model.summary().c_str());
  model.compile({.optimizer = adam(2e-3F), .loss = sparse_categorical_crossentropy(), .metrics = {accuracy()}});
  model.fit(train, {.epochs = argc > 2 ? std::atoi(argv[2]) : 4, .validation = test});
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
