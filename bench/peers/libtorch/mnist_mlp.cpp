// Workload mnist-mlp in libtorch: 784-256-256-10, Adam 1e-3 (eps 1e-7), batch 32, 50,000 / 10,000. As
// mnist_mlp_torch.py, without Python: one line of JSON an epoch.
//   mnist_mlp --data FOLDER [--epochs 3] [--threads 1] [--batch 32]
#include <torch/torch.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "arguments.h"
#include "fused_adam.h"

namespace {

// The values of an IDX file, after a header of so many bytes; gzip or plain.
torch::Tensor read_idx(const std::filesystem::path& folder, const std::string& stem, int header, int64_t count) {
  const std::filesystem::path plain = folder / stem;
  gzFile file = gzopen((exists(plain) ? plain.string() : plain.string() + ".gz").c_str(), "rb");
  torch::Tensor values = torch::empty({count}, torch::kUInt8);
  const bool whole = file != nullptr && gzseek(file, header, SEEK_SET) == header &&
                     gzread(file, values.data_ptr(), static_cast<unsigned>(count)) == count;
  if (file != nullptr) gzclose(file);
  if (!whole) throw std::runtime_error("cannot read " + plain.string());
  return values;
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments(argc, argv);
  const int64_t batch = arguments.number("--batch", 32);
  torch::set_num_threads(arguments.number("--threads", 1));
  torch::manual_seed(0);
  const std::filesystem::path folder = arguments.text("--data");
  const torch::Tensor images =
      read_idx(folder, "train-images-idx3-ubyte", 16, 60000 * 784).view({60000, 784}).to(torch::kFloat) / 255;
  const torch::Tensor labels = read_idx(folder, "train-labels-idx1-ubyte", 8, 60000).to(torch::kLong);
  using torch::nn::Linear, torch::nn::ReLU;
  torch::nn::Sequential net(Linear(784, 256), ReLU(), Linear(256, 256), ReLU(), Linear(256, 10));
  FusedAdam optimizer(net->parameters(), 1e-3, 1e-7);

  for (int epoch = 1; epoch <= arguments.number("--epochs", 3); ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const torch::Tensor order = torch::randperm(50000);
    torch::Tensor total = torch::zeros({});
    for (int64_t first = 0; first < 50000; first += batch) {
      const torch::Tensor rows = order.slice(0, first, std::min<int64_t>(first + batch, 50000));
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(images.index_select(0, rows)),
                                                                      labels.index_select(0, rows));
      loss.backward();
      optimizer.step();
      total += loss.detach() * rows.size(0);
    }
    int64_t correct = 0;
    const torch::NoGradGuard no_gradients;
    for (int64_t i = 50000; i < 60000; i += 500) {
      correct += net->forward(images.slice(0, i, i + 500))
                     .argmax(1)
                     .eq(labels.slice(0, i, i + 500))
                     .sum()
                     .item<int64_t>();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf(
        "{\"epoch\": %d, \"seconds\": %.4f, \"loss\": %.5f, \"val_accuracy\": %.4f, \"version\": \"%s\"}\n", epoch,
        seconds.count(), total.item<double>() / 50000, static_cast<double>(correct) / 10000, TORCH_VERSION);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
