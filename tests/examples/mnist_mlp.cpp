// The MNIST MLP of Keras's guide to training on several GPUs: compile, fit, evaluate. On Fashion-MNIST, or on what
// lies at the path that is given, as MNIST. On all GPUs, else one CPU replica; HEADRACE_DEVICES=cpu:8 says
// otherwise.
//   example_mnist_mlp [DATA]
//
// Prints: ^Number of devices: {R}$
// Prints: ^Epoch 2/2$
// Prints: ^79/79 - .*/step - loss: 0\.[0-9]+ - accuracy: .* - val_loss: 0\.[0-9]+ - val_accuracy: (0\.9|1)
// Prints: ^test - loss: 0\.[0-9]+ - accuracy: (0\.9|1)
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/nets.h>
#include <headrace/train/strategy.h>

#include <cstdio>

using namespace headrace;

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const Dataset all = Dataset::from(open_source(data, Split::kTrain));
  const std::uint64_t kept = all.size() - all.size() / 6;  // 50,000 of 60,000; the others validate
  const Dataset train = all.take(kept).shuffle().batch({.global_batch = 32});
  const Dataset validation = all.skip(kept).batch({.global_batch = 32});
  const Dataset test = Dataset::from(open_source(data, Split::kTest)).batch({.global_batch = 32});

  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  Model model = strategy.build(Sequential()
                                   .flatten()
                                   .dense(256, {.activation = Activation::kRelu})
                                   .dense(256, {.activation = Activation::kRelu})
                                   .dense(10)
                                   .net("image", Shape{28, 28, 1}));
  model.compile({.optimizer = adam(1e-3F), .loss = sparse_categorical_crossentropy(), .metrics = {accuracy()}});
  model.fit(train, {.epochs = 2, .validation = validation});

  const Evaluation tested = model.evaluate(test);
  std::printf("test - loss: %.4f - accuracy: %.4f\n", tested.loss, tested.accuracy);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
