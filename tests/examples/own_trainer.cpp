// The input engine alone, in front of a training loop that knows nothing else of Headrace: softmax regression on
// Fashion-MNIST by stochastic gradient descent in plain C++, one thread for each of two shares of a batch.
//   example_own_trainer [DATA]
//
// Prints: ^prefetch\(batches=4\)
// Prints: ^epoch 1: loss [0-9.]+, accuracy 0\.[0-9]+, [0-9]+ examples
// Prints: ^epoch 3: loss 0\.[0-9]+, accuracy (0\.[89][0-9]+|1\.0+), [0-9]+ examples
// Prints: ^to go on from here: headrace-loader-2 [0-9a-f]+ [0-9]+ [0-9]+ [0-9a-f]+$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/loader.h>
#include <headrace/pipeline/sources.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

using namespace headrace;

constexpr int kPixels = 28 * 28, kClasses = 10;

// Of one share of a batch: the gradients of the weights, kPixels * kClasses, and what is to be told.
struct Share {
  std::vector<float> gradients = std::vector<float>(kPixels * kClasses);
  double loss = 0;
  std::int64_t correct = 0, examples = 0;
};

Share compute(const std::vector<float>& weights, const Batch& batch) {
  Share share{.examples = batch.examples()};
  batch.ready().wait();
  const float* images = batch.tensor("image").as<float>();
  const std::int64_t* labels = batch.tensor("label").as<std::int64_t>();
  for (std::int64_t i = 0; i < batch.examples(); ++i) {
    const float* image = images + i * kPixels;
    float scores[kClasses] = {};
    for (int p = 0; p < kPixels; ++p) {
      for (int c = 0; c < kClasses; ++c) scores[c] += image[p] * weights[p * kClasses + c];
    }
    const float* best = std::max_element(scores, scores + kClasses);
    share.correct += best - scores == labels[i];
    const float max = *best;
    float sum = 0;
    for (float& score : scores) sum += score = std::exp(score - max);
    share.loss -= std::log(scores[labels[i]] / sum);
    for (int c = 0; c < kClasses; ++c) scores[c] = scores[c] / sum - (c == labels[i] ? 1.0F : 0.0F);
    for (int p = 0; p < kPixels; ++p) {
      for (int c = 0; c < kClasses; ++c) share.gradients[p * kClasses + c] += image[p] * scores[c];
    }
  }
  return share;
}

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  constexpr int kShares = 2, kEpochs = 3;
  DeviceGroup devices = open_devices("cpu:2", DeviceNeed::kMemory);
  const Dataset plan = Dataset::from(open_source(data, Split::kTrain))
                           .shuffle({.seed = 7})
                           .map(normalize({0.5F}, {0.5F}))
                           .batch({.global_batch = 64})
                           .prefetch(4);
  std::puts(plan.explain().c_str());

  Loader loader(plan, devices, {.epochs = kEpochs});
  std::vector<float> weights(kPixels * kClasses);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double loss = 0;
    std::int64_t correct = 0, examples = 0;
    for (std::uint64_t step = 0; step < loader.steps_per_epoch(); ++step) {
      std::vector<Share> shares(kShares);
      {
        std::vector<std::jthread> threads;
        for (int r = 0; r < kShares; ++r) {
          threads.emplace_back([&, r] { shares[r] = compute(weights, *loader.next(r)); });
        }
      }
      const std::int64_t rows = shares[0].examples + shares[1].examples;
      for (const Share& share : shares) {
        for (std::size_t w = 0; w < weights.size(); ++w) {
          weights[w] -= 0.01F / static_cast<float>(rows) * share.gradients[w];
        }
        loss += share.loss;
        correct += share.correct;
        examples += share.examples;
      }
    }
    std::printf("epoch %d: loss %.4f, accuracy %.4f, %lld examples\n", epoch, loss / static_cast<double>(examples),
                static_cast<double>(correct) / static_cast<double>(examples), static_cast<long long>(examples));
  }
  std::printf("to go on from here: %s\n", loader.state().serialize().c_str());
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
