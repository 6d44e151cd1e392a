#include "headrace/train/whitening.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"

namespace headrace {
namespace {

constexpr std::int64_t kImagesAtOnce = 500;

// Memory for one chunk of images and what is made of it.
struct PatchMemory {
  Buffer images, identity, patches, moments;
};

std::int64_t patch_size(const ImageBlock& images, const WhiteningOptions& options) {
  return std::int64_t{options.kernel} * options.kernel * images.shape[3];
}

void check_whitening(const ImageBlock& images, const WhiteningOptions& options) {
  if (images.shape.rank() != 4 || images.shape.elements() < 1 ||
      images.shape.elements() != static_cast<std::int64_t>(images.values.size())) {
    throw ConfigError("whitening needs images of shape (images, height, width, channels), got " +
                      images.shape.to_string());
  }
  if (options.kernel < 1 || options.kernel > images.shape[1] || options.kernel > images.shape[2]) {
    throw ConfigError("patches of " + std::to_string(options.kernel) + " pixels do not fit into images of shape " +
                      images.shape.to_string());
  }
}

// Sums patch x patch' over all patches of a chunk with the device's convolutions: with identity filters a forward
// pass lays the patches out as channels, and the weights' gradient for these is the sum.
class PatchMoments {
 public:
  PatchMoments(const ImageBlock& images, Device& device, const WhiteningOptions& options)
      : images_(images), kernels_(*device.kernels()), stream_(device.create_stream()), kernel_(options.kernel) {
    const std::int64_t chunk = std::min(kImagesAtOnce, images.shape[0]), patch = patch_size(images, options);
    const auto floats = [&](std::int64_t count) {
      return stream_->allocate(static_cast<std::size_t>(count) * sizeof(float));
    };
    memory_ = {
        .images = floats(chunk * image_elements()),
        .identity = floats(patch * patch),
        .patches = floats(chunk * (images.shape[1] - kernel_ + 1) * (images.shape[2] - kernel_ + 1) * patch),
        .moments = floats(patch * patch)};
    const Eigen::MatrixXf identity = Eigen::MatrixXf::Identity(patch, patch);
    stream_->copy(memory_.identity.data(), identity.data(), memory_.identity.size());
    stream_->synchronize();
  }

  // The mean over all patches, element by element.
  Eigen::MatrixXd mean(std::int64_t patch) {
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(patch, patch);
    Eigen::MatrixXf part(patch, patch);
    for (std::int64_t first = 0; first < images_.shape[0]; first += kImagesAtOnce) {
      submit(first, std::min(kImagesAtOnce, images_.shape[0] - first), patch);
      stream_->copy(part.data(), memory_.moments.data(), memory_.moments.size());
      stream_->synchronize();
      sum += part.cast<double>();
    }
    const std::int64_t places = (images_.shape[1] - kernel_ + 1) * (images_.shape[2] - kernel_ + 1);
    return sum / static_cast<double>(images_.shape[0] * places);
  }

 private:
  std::int64_t image_elements() const { return images_.shape.elements() / images_.shape[0]; }

  void submit(std::int64_t first, std::int64_t count, std::int64_t patch) {
    const std::int64_t height = images_.shape[1], width = images_.shape[2], channels = images_.shape[3];
    const Shape filters{patch, kernel_, kernel_, channels};
    const TensorView x = memory_.images.view({count, height, width, channels}, DType::kF32);
    const TensorView patches =
        memory_.patches.view({count, height - kernel_ + 1, width - kernel_ + 1, patch}, DType::kF32);
    stream_->copy(x.data, images_.values.data() + first * image_elements(), x.bytes());
    kernels_.conv_forward(*stream_, x, memory_.identity.view(filters, DType::kF32), {}, patches, {},
                          Activation::kNone);
    kernels_.conv_backward_weights(*stream_, x, patches, memory_.moments.view(filters, DType::kF32), {}, {});
  }

  const ImageBlock& images_;
  Kernels& kernels_;
  std::unique_ptr<Stream> stream_;
  PatchMemory memory_;  // the stream's
  std::int64_t kernel_;
};

}  // namespace

ImageBlock read_images(const Dataset& batched) {
  DeviceGroup host = open_devices("cpu:1");
  Loader loader(batched, host);
  ImageBlock block;
  while (const std::optional<Batch> batch = loader.next()) {
    const TensorView& images = batch->tensor("image");
    if (images.dtype != DType::kF32 || images.shape.rank() != 4) {
      throw ConfigError("the images to be read are " + std::string(to_string(images.dtype)) + " of shape " +
                            images.shape.to_string(),
                        "map them to float32 of shape (height, width, channels)");
    }
    batch->ready().wait();
    const std::int64_t elements = images.elements() / images.shape[0] * batch->examples();
    block.values.insert(block.values.end(), images.as<float>(), images.as<float>() + elements);
    const std::int64_t seen = block.shape.rank() == 4 ? block.shape[0] : 0;
    block.shape = Shape{seen + batch->examples(), images.shape[1], images.shape[2], images.shape[3]};
  }
  return block;
}

std::vector<float> whitening_filters(const ImageBlock& images, Device& device, const WhiteningOptions& options) {
  check_whitening(images, options);
  const std::int64_t patch = patch_size(images, options);
  const Eigen::MatrixXd moments = PatchMoments(images, device, options).mean(patch);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(moments);
  std::vector<float> filters(static_cast<std::size_t>(2 * patch * patch));
  for (std::int64_t i = 0; i < patch; ++i) {
    Eigen::VectorXd filter = solver.eigenvectors().col(i);
    Eigen::Index largest = 0;
    filter.cwiseAbs().maxCoeff(&largest);
    const double sign = filter[largest] < 0 ? -1 : 1;
    filter *= sign / std::sqrt(solver.eigenvalues()[i] + static_cast<double>(options.epsilon));
    for (std::int64_t k = 0; k < patch; ++k) {
      filters[static_cast<std::size_t>(i * patch + k)] = static_cast<float>(filter[k]);
      filters[static_cast<std::size_t>((patch + i) * patch + k)] = static_cast<float>(-filter[k]);
    }
  }
  return filters;
}

}  // namespace headrace
