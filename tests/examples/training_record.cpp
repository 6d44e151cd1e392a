// A training that is one file, and what another program makes of it that knows nothing of the model. On
// Fashion-MNIST, or on what lies at the path that is given, as MNIST.
//   example_training_record [DATA]
//
// Prints: ^loss: [0-9.]+, then [0-9.]+$
// Prints: ^test accuracy: (0\.[89]|1)
// Prints: ^of the record alone: (0\.[89]|1)
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/nets.h>
#include <headrace/train/strategy.h>
#include <headrace/train/training_record.h>

#include <cstdio>

using namespace headrace;

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  const Operations normal = normalize({0.286F}, {0.353F});
  const Dataset train =
      Dataset::from(open_source(data, Split::kTrain)).shuffle().map(normal).batch({.global_batch = 32});
  const Dataset test = Dataset::from(open_source(data, Split::kTest)).map(normal).batch({.global_batch = 500});

  Model model = strategy.build(mnist_mlp, {.fields = train.fields()});
  TrainingRecord record = create_training_record(model, sparse_categorical_crossentropy(), adam(), 2);
  const History history = record.train(train, 0, {.validation = test});
  std::printf("loss: %.4f, then %.4f\n", history["loss"].front(), history["loss"].back());

  const double accuracy = model.evaluate(test).accuracy;
  std::printf("test accuracy: %.4f\n", accuracy);

  // As `headrace evaluate --record training.safetensors --data DATA`: the record knows that its images are
  // normalised.
  const Evaluation alone = evaluate_record(strategy, record.file(), open_source(data, Split::kTest));
  std::printf("of the record alone: %.4f\n", alone.accuracy);
  return alone.accuracy == accuracy ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
