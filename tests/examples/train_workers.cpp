// One program for one device, several devices and several workers. On Fashion-MNIST, or on what lies at the path
// that is given, as MNIST. A process alone takes all GPUs, else one CPU replica; HEADRACE_DEVICES=cpu:8 says
// otherwise.
//   example_train_workers [DATA]
//   torchrun --no-python --nproc-per-node 2 example_train_workers [DATA]
//   mpirun -n 2 example_train_workers [DATA]
// As many replicas give the same weights, whatever the number of workers that they are spread over.
//
// Prints: ^Number of devices: {R}$
// Prints: ^Epoch 2/2$
// Prints: ^test - loss: 0\.[0-9]+ - accuracy: (0\.9|1)
// Prints: ^weights [0-9a-f]{64}$
#include <headrace/devices/registry.h>
#include <headrace/devices/workers.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/nets.h>
#include <headrace/train/strategy.h>

#include <cstdio>

using namespace headrace;

int main(int argc, char** argv) try {
  const std::shared_ptr<Workers> workers = open_world();  // waits for the others; null for a process alone
  if (workers) share_cores(*workers);
  DeviceGroup devices = open_devices(devices_of_worker("auto", workers.get()));
  Strategy strategy(devices, {.workers = workers});

  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const Dataset train = Dataset::from(open_source(data, Split::kTrain)).shuffle().batch({.global_batch = 32});
  const Dataset test = Dataset::from(open_source(data, Split::kTest)).batch({.global_batch = 32});

  Model model = strategy.build(mnist_mlp, {.fields = train.fields()});
  model.compile({.optimizer = adam(1e-3F)});
  model.fit(train, {.epochs = 2});
  const Evaluation tested = model.evaluate(test);  // of all workers' shares, the same on each
  if (!strategy.is_chief()) return 0;
  std::printf("test - loss: %.4f - accuracy: %.4f\n", tested.loss, tested.accuracy);
  std::printf("weights %s\n", model.weights_sha256().c_str());
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
