#include "headrace/pipeline/operations/kernels/grey_kernels.h"
#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class GrayscaleDefinition final : public ImageOperation<Grayscale> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    if (options_.channels == 1) {
      to_grey(image.from, image.height * image.width, image.to);
    } else {
      to_grey_rgb(image.from, image.height * image.width, image.to);
    }
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    if (before.shape[2] != 3) checks.refuse("an image of three channels, RGB, is needed");
    if (options_.channels != 1 && options_.channels != 3) checks.refuse("the channels are neither 1 nor 3");
    if (options_.channels == 1 && options_.probability < 1) {
      checks.refuse("some images would have one channel and others three", "ask for three channels");
    }
    Field after = before;
    after.shape = Shape{before.shape[0], before.shape[1], options_.channels};
    return after;
  }
};

}  // namespace

OperationPtr define(Grayscale options) { return std::make_shared<GrayscaleDefinition>(options); }

Operations grayscale(Grayscale options) { return Operation{options}; }

}  // namespace headrace
