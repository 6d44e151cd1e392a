#include "headrace/tools/recipes/speed_recipe.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kImagesAtOnce = 500;

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

// One a row, the first half's largest component positive, then their opposites.
std::vector<float> filters_of(const Eigen::MatrixXd& moments, float epsilon) {
  const Eigen::Index patch = moments.rows();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(moments);
  std::vector<float> filters(static_cast<std::size_t>(2 * patch * patch));
  for (Eigen::Index i = 0; i < patch; ++i) {
    Eigen::VectorXd filter = solver.eigenvectors().col(i);
    Eigen::Index largest = 0;
    filter.cwiseAbs().maxCoeff(&largest);
    const double sign = filter[largest] < 0 ? -1 : 1;
    filter *= sign / std::sqrt(solver.eigenvalues()[i] + static_cast<double>(epsilon));
    for (Eigen::Index k = 0; k < patch; ++k) {
      filters[static_cast<std::size_t>(i * patch + k)] = static_cast<float>(filter[k]);
      filters[static_cast<std::size_t>((patch + i) * patch + k)] = static_cast<float>(-filter[k]);
    }
  }
  return filters;
}

}  // namespace

// Sums patch x patch' over all patches with the device's convolutions: with identity filters a forward pass lays
// the patches out as channels, and the weights' gradient for these is the sum. Some images at a time.
class Whitening::Impl {
 public:
  Impl(const ImageBlock& images, Device& device, const WhiteningOptions& options)
      : kernels_(*device.kernels()),
        stream_(device.create_stream()),
        shape_(images.shape),
        options_(options),
        patch_(patch_size(images, options)) {
    upload(images, device);
    identity_ = floats(patch_ * patch_);
    patches_ = floats(std::min(kImagesAtOnce, shape_[0]) * places() * patch_);
    moments_ = floats(patch_ * patch_);
    sums_ = device.allocate_pinned(chunks_.size() * moments_.size());
    const Eigen::MatrixXf identity = Eigen::MatrixXf::Identity(patch_, patch_);
    stream_->copy(identity_.data(), identity.data(), identity_.size());
    stream_->synchronize();
  }

  std::vector<float> filters() {
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) submit(chunk);
    stream_->synchronize();
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(patch_, patch_);
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      const auto* part = reinterpret_cast<const float*>(sums_.data() + chunk * moments_.size());
      sum += Eigen::Map<const Eigen::MatrixXf>(part, patch_, patch_).cast<double>();
    }
    return filters_of(sum / static_cast<double>(shape_[0] * places()), options_.epsilon);
  }

 private:
  // Returns the elements of an image.
  std::int64_t elements() const { return shape_.elements() / shape_[0]; }
  std::int64_t places() const { return (shape_[1] - options_.kernel + 1) * (shape_[2] - options_.kernel + 1); }
  std::int64_t images_of(std::size_t chunk) const {
    return std::min(kImagesAtOnce, shape_[0] - static_cast<std::int64_t>(chunk) * kImagesAtOnce);
  }
  Buffer floats(std::int64_t count) { return stream_->allocate(static_cast<std::size_t>(count) * sizeof(float)); }

  void upload(const ImageBlock& images, Device& device) {
    const auto bytes = static_cast<std::size_t>(std::min(kImagesAtOnce, shape_[0]) * elements()) * sizeof(float);
    const Buffer pinned = device.info().host_memory ? Buffer{} : device.allocate_pinned(bytes);
    const float* from = images.values.data();
    for (std::int64_t first = 0; first < shape_[0]; first += kImagesAtOnce) {
      chunks_.push_back(floats(images_of(chunks_.size()) * elements()));
      const Buffer& chunk = chunks_.back();
      if (pinned) std::memcpy(pinned.data(), from, chunk.size());
      stream_->copy(chunk.data(), pinned ? static_cast<const void*>(pinned.data()) : from, chunk.size());
      stream_->synchronize();
      from += chunk.size() / sizeof(float);
    }
  }

  void submit(std::size_t chunk) {
    const std::int64_t count = images_of(chunk), kernel = options_.kernel;
    const Shape filters{patch_, kernel, kernel, shape_[3]};
    const TensorView x = chunks_[chunk].view({count, shape_[1], shape_[2], shape_[3]}, DType::kF32);
    const TensorView patches =
        patches_.view({count, shape_[1] - kernel + 1, shape_[2] - kernel + 1, patch_}, DType::kF32);
    kernels_.conv_forward(*stream_, {x, identity_.view(filters, DType::kF32), {}, patches, {}, Activation::kNone});
    kernels_.conv_backward_weights(*stream_, {x, patches, moments_.view(filters, DType::kF32), {}, {}});
    stream_->copy(sums_.data() + chunk * moments_.size(), moments_.data(), moments_.size());
  }

  Kernels& kernels_;
  std::unique_ptr<Stream> stream_;
  Shape shape_;
  WhiteningOptions options_;
  std::int64_t patch_;  // elements of one
  // The stream's memory, but for the last.
  std::vector<Buffer> chunks_;  // of images
  Buffer identity_;
  Buffer patches_, moments_;  // of a chunk
  Buffer sums_;               // pinned: the moments of each
};

Whitening::Whitening(const ImageBlock& images, Device& device, const WhiteningOptions& options) {
  check_whitening(images, options);
  impl_ = std::make_unique<Impl>(images, device, options);
}
Whitening::~Whitening() = default;
Whitening::Whitening(Whitening&&) noexcept = default;
Whitening& Whitening::operator=(Whitening&&) noexcept = default;

std::vector<float> Whitening::filters() { return impl_->filters(); }

ImageBlock read_images(const Dataset& batched, const LoaderOptions& input) {
  DeviceGroup host = open_devices("cpu:1");
  Loader loader(batched, host, input);
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
  return Whitening(images, device, options).filters();
}

}  // namespace headrace::tools
