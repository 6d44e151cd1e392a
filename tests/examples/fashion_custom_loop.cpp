// Fashion-MNIST with a custom training loop, after TensorFlow's tutorial on custom training with
// MirroredStrategy: the seven steps of synchronous training in plain sight.
//   example_fashion_custom_loop [DATA [EPOCHS]]
//
// Prints: ^Number of devices: {R}$
// Prints: ^Epoch 1, Loss: [0-9.]+, Accuracy: [0-9.]+, Test Loss: [0-9.]+, Test Accuracy: [0-9.]+$
// Prints: ^Epoch 4, Loss: 0\.[0-9]+, Accuracy: (9[0-9]|100)\..*, Test Loss: 0\.[0-9]+, Test Accuracy:
// (9[0-9]|100)\.
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/evaluator.h>
#include <headrace/train/strategy.h>
#include <headrace/train/trainer.h>

#include <cstdio>
#include <cstdlib>

using namespace headrace;

Node small_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {28, 28, 1}), 32, {.activation = Activation::kRelu});
  x = g.conv(g.max_pool(x, 2), 64, {.activation = Activation::kRelu});
  x = g.dense(g.flatten(g.max_pool(x, 2)), 64, {.activation = Activation::kRelu});
  return g.dense(x, 10);
}

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 4;
  DeviceGroup devices = open_devices();
  Strategy strategy(devices);

  // 1. Data: every global batch of 64 is divided among the replicas.
  const LoaderOptions all_epochs{.epochs = static_cast<std::uint64_t>(epochs)};
  Loader train(Dataset::from(open_source(data, Split::kTrain)).shuffle().batch({.global_batch = 64}), devices,
               all_epochs);
  Loader test(Dataset::from(open_source(data, Split::kTest)).batch({.global_batch = 64}), devices, all_epochs);

  // 2. The model, mirrored on every replica. 3. The loss, one number an example. 4. The optimizer.
  Model model = strategy.build(small_cnn);
  model.compile({.optimizer = adam(1e-3F), .loss = sparse_categorical_crossentropy(), .metrics = {accuracy()}});

  Trainer trainer(strategy, model, train);
  const auto train_step = [&](GlobalBatch batches) {
    // 5. Work for each device: its share forward, each example's loss, and back to the gradients.
    const ForwardPass& pass = trainer.forward(std::move(batches));
    const std::vector<double> losses = strategy.run([&](const ReplicaContext& replica) {
      return compute_average_loss(pass.example_losses(replica.index), pass.global_examples());
    });
    trainer.backward();
    trainer.all_reduce();       // 6. Merge the gradients of all replicas.
    trainer.apply_gradients();  // 7. Update every copy of the variables alike.
    return strategy.reduce(ReduceOp::kSum, losses);
  };

  Evaluator evaluator(model, test);
  const auto test_step = [&](GlobalBatch batches) { evaluator.forward(std::move(batches)); };

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    trainer.reset_metrics();
    evaluator.reset_metrics();
    double loss = 0;
    for (std::uint64_t step = 0; step < train.steps_per_epoch(); ++step) loss += train_step(*trainer.take());
    for (std::uint64_t step = 0; step < test.steps_per_epoch(); ++step) test_step(*evaluator.take());
    const MetricSums trained = trainer.finish(), tested = evaluator.finish();
    std::printf("Epoch %d, Loss: %.4f, Accuracy: %.2f, Test Loss: %.4f, Test Accuracy: %.2f\n", epoch,
                loss / static_cast<double>(train.steps_per_epoch()), 100 * mean_accuracy(trained),
                mean_loss(tested), 100 * mean_accuracy(tested));
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
