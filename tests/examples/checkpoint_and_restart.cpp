// Checkpoint and restart, as in Keras's guide to training on several GPUs: a training with a checkpoint after each
// epoch; run again, it goes on where it ended. On Fashion-MNIST, or on what lies at the path that is given, as
// MNIST.
//   example_checkpoint_and_restart [DATA]
//
// Prints: ^Creating a new model$
// Prints: ^Epoch 1/1$
// Prints: ^Restoring from checkpoints/ckpt-1.safetensors$
// Prints: ^Epoch 2/2$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/checkpoints.h>
#include <headrace/train/nets.h>
#include <headrace/train/strategy.h>

#include <cstdio>

using namespace headrace;

static void run_training(const Dataset& train, const Dataset& validation, int epochs) {
  DeviceGroup devices = open_devices();
  Strategy strategy(devices);
  Model model = restore_or_create(strategy, "checkpoints", [&] {
    Model created = strategy.build(mnist_mlp, {.fields = train.fields()});
    created.compile({.optimizer = adam(), .loss = sparse_categorical_crossentropy(), .metrics = {accuracy()}});
    return created;
  });
  model.fit(train, {.epochs = epochs,
                    .validation = validation,
                    .verbose = 2,
                    .checkpoints = CheckpointOptions{.folder = "checkpoints", .name = "ckpt-{epoch}"},
                    .resume = true});
}

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const Dataset all = Dataset::from(open_source(data, Split::kTrain));
  const std::uint64_t kept = all.size() - all.size() / 6;
  const Dataset train = all.take(kept).shuffle().batch({.global_batch = 32});
  const Dataset validation = all.skip(kept).batch({.global_batch = 32});
  run_training(train, validation, 1);  // creates the model
  run_training(train, validation, 2);  // and, as another program would, continues its training
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
