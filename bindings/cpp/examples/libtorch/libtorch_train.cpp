// A libtorch training loop fed by Headrace: a small CNN on Fashion-MNIST. Tensors are the batches' own memory, on
// the CPU as on a GPU.
//   libtorch_train [DATA [DEVICE]]      DEVICE: cpu (the default) or cuda:0
#include <headrace/devices/registry.h>
#include <headrace/pipeline/dlpack.h>
#include <headrace/pipeline/loader.h>
#include <headrace/pipeline/sources.h>

#include <ATen/DLConvertor.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

using headrace::Dataset;
using headrace::Loader;
using headrace::SharedBatch;
using headrace::Split;

// The batch goes back to the loader when the last tensor of it is gone, those that autograd keeps included.
// libtorch works in the default stream, 0, unless a stream guard says otherwise: that stream waits for the copy,
// not the host.
torch::Tensor tensor_of(const SharedBatch& batch, const std::string& field) {
  return at::fromDLPack(headrace::to_legacy_dlpack(batch, field, {.stream = 0}));
}

Dataset images(const std::string& data, Split split) {
  return Dataset::from(headrace::open_source(data, split))
      .map(headrace::normalize({0.286F}, {0.353F}) | headrace::to_layout(headrace::ImageLayout::kChannelsFirst));
}

torch::nn::Sequential small_cnn() {
  using namespace torch::nn;
  return Sequential(Conv2d(Conv2dOptions(1, 16, 5).stride(2)), ReLU(), Conv2d(Conv2dOptions(16, 32, 5).stride(2)),
                    ReLU(), Flatten(), Linear(32 * 4 * 4, 10));
}

double accuracy(torch::nn::Sequential& model, Loader& loader) {
  torch::NoGradGuard no_gradients;
  std::int64_t correct = 0, examples = 0;
  while (auto next = loader.next()) {
    const SharedBatch batch(std::move(*next));
    const torch::Tensor label = tensor_of(batch, "label");
    correct += model->forward(tensor_of(batch, "image")).argmax(1).eq(label).sum().item<std::int64_t>();
    examples += label.size(0);
  }
  return static_cast<double>(correct) / static_cast<double>(examples);
}

int main(int argc, char** argv) try {
  const std::string data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const std::string device = argc > 2 ? argv[2] : "cpu";
  torch::manual_seed(7);

  headrace::DeviceGroup devices = headrace::open_devices(device, headrace::DeviceNeed::kMemory);
  const Dataset train = images(data, Split::kTrain).shuffle({.seed = 7}).batch({.global_batch = 128}).prefetch(4);
  const Dataset test = images(data, Split::kTest).batch({.global_batch = 500});

  torch::nn::Sequential model = small_cnn();
  model->to(torch::Device(device));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(2e-3));

  Loader loader(train, devices);
  while (auto next = loader.next()) {
    const SharedBatch batch(std::move(*next));
    const torch::Tensor image = tensor_of(batch, "image");
    TORCH_CHECK(image.data_ptr() == batch->tensor("image").data, "a tensor is a copy");
    optimizer.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model->forward(image), tensor_of(batch, "label"));
    loss.backward();
    optimizer.step();
    const headrace::BatchPosition& position = batch->position();
    if (position.step % 100 == 0) {
      std::printf("step %3d: loss %.3f\n", static_cast<int>(position.step), loss.item<double>());
    }
  }
  std::printf("%s\n", loader.stats().summary().c_str());

  Loader test_loader(test, devices);
  std::printf("test accuracy %.4f\n", accuracy(model, test_loader));
} catch (const headrace::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
