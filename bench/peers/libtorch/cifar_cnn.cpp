// Workload train-step in libtorch: the net of recipe cifar10-cnn, Adam, batch 512, f32, channels last. As
// cifar_cnn_torch.py, without Python: one line of JSON an epoch of --steps steps, over a ready tensor.
//   cifar_cnn [--epochs 3] [--steps 8] [--threads 1] [--batch 512]
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

#include "arguments.h"
#include "fused_adam.h"

namespace {

using namespace torch::nn;

void add_block(Sequential& net, int64_t from, int64_t to) {
  net->push_back(Conv2d(Conv2dOptions(from, to, 3).padding(1).bias(false)));
  net->push_back(BatchNorm2d(BatchNorm2dOptions(to).eps(1e-3)));
  net->push_back(ReLU());
}

void add_pool(Sequential& net, double dropped) {
  net->push_back(MaxPool2d(2));
  if (dropped > 0) net->push_back(Dropout(dropped));
}

Sequential cifar_cnn() {
  Sequential net;
  add_block(net, 3, 32);
  add_block(net, 32, 32);
  add_pool(net, 0.1);
  add_block(net, 32, 64);
  add_block(net, 64, 64);
  add_pool(net, 0.2);
  add_block(net, 64, 128);
  add_pool(net, 0);
  net->push_back(AdaptiveAvgPool2d(1));
  net->push_back(Flatten());
  net->push_back(Dropout(0.2));
  net->push_back(Linear(128, 10));
  return net;
}

// Weights of convolutions as channels_last, which is how PyTorch's net.to(memory_format=...) leaves them.
void to_channels_last(Sequential& net) {
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& parameter : net->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments(argc, argv);
  const int steps = arguments.number("--steps", 8), batch = arguments.number("--batch", 512);
  torch::set_num_threads(arguments.number("--threads", 1));
  torch::manual_seed(0);
  Sequential net = cifar_cnn();
  to_channels_last(net);
  FusedAdam optimizer(net->parameters(), 2e-3, 1e-8);
  const torch::Tensor images = torch::randn({batch, 3, 32, 32}).contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor labels = torch::randint(0, 10, {batch});

  for (int epoch = 1; epoch <= arguments.number("--epochs", 3); ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    torch::Tensor loss;
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      loss = torch::nn::functional::cross_entropy(net->forward(images), labels);
      loss.backward();
      optimizer.step();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf(
        "{\"epoch\": %d, \"seconds\": %.4f, \"loss\": %.5f, \"examples_per_second\": %.1f, \"version\": \"%s\"}\n",
        epoch, seconds.count(), loss.item<double>(), steps * batch / seconds.count(), TORCH_VERSION);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
