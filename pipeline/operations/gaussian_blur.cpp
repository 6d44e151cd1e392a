#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/kernels/blur_kernels.h"
#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class GaussianBlurDefinition final : public ImageOperation<GaussianBlur> {
 public:
  using ImageOperation::ImageOperation;

  bool is_random() const noexcept override {
    const bool varies = options_.sigma[0] != options_.sigma[1] && options_.probability > 0;
    return varies || ImageOperation::is_random();
  }

  bool takes_long() const noexcept override { return true; }

  void change(const LevelWork& image, Philox& random, Scratch& scratch) const override {
    const auto [low, high] = options_.sigma;
    const double sigma = low + (static_cast<double>(high) - low) * random.uniform();
    if (image.height <= options_.kernel_size / 2 || image.width <= options_.kernel_size / 2) {
      throw Error(ErrorCode::kDataCorrupt,
                  fmt::format("an image of {} x {} is too small for {}", image.height, image.width, describe()),
                  "resize() first");
    }
    const std::size_t bytes = blur_bytes(image, options_.kernel_size);
    blur(image, gaussian_weights(options_.kernel_size, sigma), scratch.grow(scratch.decoded, bytes));
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    const GaussianBlur& o = options_;
    if (o.kernel_size < 1 || o.kernel_size > kMaxBlurTaps || o.kernel_size % 2 == 0) {
      checks.refuse(fmt::format("the kernel size is no odd number of 1 to {}", kMaxBlurTaps));
    }
    const auto [low, high] = o.sigma;
    checks.want_finite(o.sigma);
    if (!(low > 0 && low <= high)) checks.refuse("sigma must satisfy 0 < minimum <= maximum");
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t extent = before.shape[axis];
      if (extent != Shape::kDynamic && extent <= o.kernel_size / 2) {
        checks.refuse("reflection needs an image larger than half of the kernel");
      }
    }
    return before;
  }
};

}  // namespace

OperationPtr define(GaussianBlur options) { return std::make_shared<GaussianBlurDefinition>(options); }

Operations gaussian_blur(GaussianBlur options) { return Operation{options}; }

}  // namespace headrace
