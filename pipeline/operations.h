// The engine's operations: each is a name and fields, which a plan's JSON and every language call alike. Joined
// with |, or given to Dataset::map() one after another. Two numbers for one property are its minimum and maximum.
// kDoc explains an operation in help and in Python, where a call must give the first kRequired options.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "headrace/pipeline/operation.h"

namespace HEADRACE_API headrace {

enum class Padding { kZero, kReflect };
constexpr std::array<const char*, 2> choice_names(Padding /*of*/) { return {"zero", "reflect"}; }

struct PadCrop {
  static constexpr const char* kName = "pad_crop";
  static constexpr const char* kDoc = "Pads by `pad` on each side and crops a random size x size window.";
  int size = 32;
  int pad = 4;
  Padding padding = Padding::kZero;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit("size", size, "Height and width of the result.");
    visit("pad", pad, "Pixels added on each side.");
    visit("padding", padding, "What they hold: 0, or the image mirrored.");
  }
};
// The way a pixel is made from those around the point it comes from.
enum class Interpolation {
  kNearest,   // the pixel that the point lies in
  kBilinear,  // the four whose middles are around it, by their distances
};
constexpr std::array<const char*, 2> choice_names(Interpolation /*of*/) { return {"nearest", "bilinear"}; }
struct Flip {
  static constexpr const char* kName = "flip";
  static constexpr const char* kDoc = "Mirrors an image left-right with this probability.";
  float probability = 0.5F;
  bool alternating = false;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of mirroring an image.");
    visit(
        "alternating", alternating,
        "Whether it is drawn once per record and inverted from pass to pass: two passes in a row show both ways.");
  }
};
struct VerticalFlip {
  static constexpr const char* kName = "vertical_flip";
  static constexpr const char* kDoc = "Turns an image upside down with this probability.";
  float probability = 0.5F;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of mirroring an image.");
  }
};
// Turns a u8 image around its middle by an angle drawn uniformly, counter-clockwise, with `probability`; the size
// stays. `fill` shows where nothing comes from, between whose middles and the image's bilinear pixels blend: one
// number, or one per channel, of four at most.
struct RandomRotation {
  static constexpr const char* kName = "random_rotation";
  static constexpr const char* kDoc = "Turns a uint8 image around its middle by a random angle; its size stays.";
  static constexpr int kRequired = 1;
  std::array<float, 2> degrees = {-10, 10};
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  float probability = 1;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit.around_zero("degrees", degrees, "The minimum and maximum angle, counter-clockwise.");
    visit("interpolation", interpolation, "How a pixel is made of those around the point it comes from.");
    visit("fill", fill, "The value of new pixels: one for all channels, or one a channel.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Like RandomRotation, by torchvision's affine(): sheared along both axes, turned clockwise, scaled, and moved by
// whole pixels, up to `translate` of the width and height either way. All drawn uniformly.
// Degrees of shear lie within -90 and 90.
struct RandomAffine {
  static constexpr const char* kName = "random_affine";
  static constexpr const char* kDoc =
      "Shears, turns clockwise, scales and moves a uint8 image, as torchvision's RandomAffine.";
  std::array<float, 2> degrees = {};
  std::array<float, 2> translate = {};
  std::array<float, 2> scale = {1, 1};
  std::array<float, 4> shear = {};
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  float probability = 1;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit.around_zero("degrees", degrees, "The minimum and maximum angle, clockwise.");
    visit("translate", translate, "The largest moves either way, as parts of the width and of the height.");
    visit("scale", scale, "The minimum and maximum scale.");
    visit.around_zero("shear", shear, "The minimum and maximum shear along x, then along y, in degrees.");
    visit("interpolation", interpolation, "How a pixel is made of those around the point it comes from.");
    visit("fill", fill, "The value of new pixels: one for all channels, or one a channel.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Normalises: (x / 255 - mean[c]) / std[c] for u8, (x - mean[c]) / std[c] for f32; the result is f32, and exactly
// this: x s + t in f32, the product rounded before the sum, with s = 1 / (255 std[c]) for u8 or 1 / std[c] for f32
// and t = -mean[c] / std[c], each computed in double from the given floats and rounded once to f32. Equal on every
// processor and device; differs from dividing twice in f32, as torchvision does, by a unit or two in the last
// place. One entry for all channels, or one per channel.
struct Normalize {
  static constexpr const char* kName = "normalize";
  static constexpr const char* kDoc =
      "(x / 255 - mean) / std for uint8, whose mean and std are at most 1, (x - mean) / std for float32; float32.";
  static constexpr int kRequired = 2;
  std::vector<float> mean;
  std::vector<float> std;
  void each_field(OptionVisitor& visit) {
    visit("mean", mean, "Subtracted: one for all channels, or one a channel.");
    visit("std", std, "Divides the difference: as many.");
  }
};
struct Cast {
  static constexpr const char* kName = "cast";
  static constexpr const char* kDoc = "Changes the element type; float32 to uint8 rounds and saturates.";
  static constexpr int kRequired = 1;
  DType to = DType::kF32;
  void each_field(OptionVisitor& visit) { visit("to", to, "The element type of the result."); }
};
struct ToLayout {
  static constexpr const char* kName = "to_layout";
  static constexpr const char* kDoc = "(H, W, C) to (C, H, W) and back.";
  static constexpr int kRequired = 1;
  ImageLayout layout = ImageLayout::kChannelsFirst;
  void each_field(OptionVisitor& visit) { visit("layout", layout, "The layout of the result."); }
};
// Says where the channels of the field's images are, and changes nothing. Images are channels last where nothing
// else is said: by this, by to_layout(), or by a user's function.
struct LayoutIs {
  static constexpr const char* kName = "layout_is";
  static constexpr const char* kDoc = "Says where the channels of images are, else (H, W, C); changes nothing.";
  static constexpr int kRequired = 1;
  ImageLayout layout = ImageLayout::kChannelsFirst;
  std::string field = "image";
  void each_field(OptionVisitor& visit) {
    visit("layout", layout, "Where the channels are.");
    visit("field", field, "The field of images.");
  }
};
struct FlattenSample {
  static constexpr const char* kName = "flatten";
  static constexpr const char* kDoc = "Flattens any shape to one axis.";
  void each_field(OptionVisitor& /*visit*/) {}
};
// Changes an RGB image's colours randomly in torchvision's ranges: factors uniform in [max(0, 1 - x), 1 + x], the
// hue turned by up to `hue` (at most 0.5) of the circle either way. 0 leaves a property alone. The four are
// applied in an order drawn for each record, each to the result of the previous one, clamped to 0..255 and rounded
// once at the end. Brightness v f; contrast m + (v - m) f, m the image's mean luma; saturation l + (v - l) f, l
// the pixel's luma, 0.299 R + 0.587 G + 0.114 B; hue in HSV.
struct ColorJitter {
  static constexpr const char* kName = "color_jitter";
  static constexpr const char* kDoc =
      "Changes the colours of an RGB image by random amounts within torchvision's ranges.";
  float brightness = 0, contrast = 0, saturation = 0;
  float hue = 0;
  float probability = 1;  // to change an image at all
  void each_field(OptionVisitor& visit) {
    visit("brightness", brightness, "The largest change of brightness, as a part.");
    visit("contrast", contrast, "Of contrast.");
    visit("saturation", saturation, "Of saturation.");
    visit("hue", hue, "Of hue, as a part of the circle.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Replaces the colours of an RGB image by their grey, 0.299 R + 0.587 G + 0.114 B, with `probability`: in each of
// three channels, or in 1.
struct Grayscale {
  static constexpr const char* kName = "grayscale";
  static constexpr const char* kDoc =
      "Replaces the colours of an RGB image by their grey, 0.299 R + 0.587 G + 0.114 B.";
  int channels = 3;
  float probability = 1;
  void each_field(OptionVisitor& visit) {
    visit("channels", channels, "1, or 3 equal ones.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Blurs a u8 image with `probability`: the weights of a normal distribution whose deviation is drawn uniformly,
// over a square of kernel_size pixels a side (odd, at most 127); beyond the border pixels are reflected.
struct GaussianBlur {
  static constexpr const char* kName = "gaussian_blur";
  static constexpr const char* kDoc = "Blurs a uint8 image over kernel_size x kernel_size pixels.";
  int kernel_size = 23;
  std::array<float, 2> sigma = {0.1F, 2};
  float probability = 1;
  void each_field(OptionVisitor& visit) {
    visit("kernel_size", kernel_size, "Pixels a side of the square that is averaged; odd.");
    visit.fixed_or_range("sigma", sigma, "The minimum and maximum standard deviation, in pixels.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// These change a u8 image with `probability`, as Pillow's ImageOps and ImageEnhance do.
// 255 - v.
struct Invert {
  static constexpr const char* kName = "invert";
  static constexpr const char* kDoc = "255 - x of a uint8 image.";
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Keeps the highest `bits` of each level, 0 to 8, and clears the others.
struct Posterize {
  static constexpr const char* kName = "posterize";
  static constexpr const char* kDoc = "Keeps the highest bits of each level of a uint8 image.";
  static constexpr int kRequired = 1;
  int bits = 4;
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("bits", bits, "Bits kept of each level, 0 to 8.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// 255 - v where v is at least the threshold.
struct Solarize {
  static constexpr const char* kName = "solarize";
  static constexpr const char* kDoc = "255 - x where x is at least the threshold, of a uint8 image.";
  float threshold = 128;
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("threshold", threshold, "The lowest level that is inverted.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// s + (v - s) f rounded down, s the mean of the pixel (five times) and its eight neighbours; not at the border.
struct AdjustSharpness {
  static constexpr const char* kName = "adjust_sharpness";
  static constexpr const char* kDoc = "Sharpens or blurs a uint8 image, as Pillow's ImageEnhance.Sharpness.";
  static constexpr int kRequired = 1;
  float factor = 2;
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("factor", factor, "0 blurs, 1 changes nothing, 2 sharpens.");
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Spreads each channel's levels until they reach from 0 to 255.
struct Autocontrast {
  static constexpr const char* kName = "autocontrast";
  static constexpr const char* kDoc = "Spreads each channel of a uint8 image until it reaches from 0 to 255.";
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Spreads each channel's levels by how often they occur.
struct Equalize {
  static constexpr const char* kName = "equalize";
  static constexpr const char* kDoc = "Spreads each channel of a uint8 image by how often its levels occur.";
  float probability = 0.5F;
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of changing an image at all.");
  }
};
// Applies several operations (`operations`: how many) to a u8 RGB image in turn, each drawn from torchvision's 14
// (identity, shear and translate along each axis, rotate, brightness, colour, contrast, sharpness, posterize,
// solarize, autocontrast, equalize), with the magnitude number `magnitude` of `bins` from none to the full one and
// a random sign.
struct RandAugment {
  static constexpr const char* kName = "rand_augment";
  static constexpr const char* kDoc =
      "Applies several of torchvision's 14 operations to a uint8 RGB image, each drawn.";
  int operations = 2;
  int magnitude = 9;
  int bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  void each_field(OptionVisitor& visit) {
    visit("operations", operations, "How many are applied, one after another.");
    visit("magnitude", magnitude, "Their strength, 0 to `bins` - 1.");
    visit("bins", bins, "How many strengths there are.");
    visit("interpolation", interpolation, "How a pixel is made of those around the point it comes from.");
    visit("fill", fill, "The value of new pixels: one for all channels, or one a channel.");
  }
};
// Applies one operation to a u8 RGB image: drawn from RandAugment's with a wider range of magnitudes, of which one
// of `bins` is drawn, too.
struct TrivialAugmentWide {
  static constexpr const char* kName = "trivial_augment_wide";
  static constexpr const char* kDoc = "Applies one of torchvision's 14 operations to a uint8 RGB image, drawn.";
  int bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  void each_field(OptionVisitor& visit) {
    visit("bins", bins, "How many strengths there are.");
    visit("interpolation", interpolation, "How a pixel is made of those around the point it comes from.");
    visit("fill", fill, "The value of new pixels: one for all channels, or one a channel.");
  }
};
// (x - m) / max(s, 1 / sqrt(n)): m the mean of the image's n numbers, s their standard deviation; f32.
struct PerImageStandardization {
  static constexpr const char* kName = "per_image_standardization";
  static constexpr const char* kDoc =
      "(x - mean) / max(deviation, 1 / sqrt(n)) over all n numbers of an image; float32.";
  void each_field(OptionVisitor& /*visit*/) {}
};
// Changes all numbers of an f32 image by values drawn for its record: (x + b) c, b uniform in [-brightness,
// brightness], c in [1 - contrast, 1 + contrast]. For normalised images, whose mean is 0.
struct BrightnessContrast {
  static constexpr const char* kName = "brightness_contrast";
  static constexpr const char* kDoc =
      "(x + b) c for float32 images whose mean is 0: b and c are drawn for each record.";
  float brightness = 0, contrast = 0;
  void each_field(OptionVisitor& visit) {
    visit("brightness", brightness, "The largest number added or subtracted.");
    visit("contrast", contrast, "The largest change of the factor 1.");
  }
};
// Sets a square around a random pixel, clipped at the border, to a value: one for all channels, or one per
// channel, in the units of the elements at this place of the chain. Either layout.
struct Cutout {
  static constexpr const char* kName = "cutout";
  static constexpr const char* kDoc = "Sets a square around a random pixel to a value.";
  int size = 8;
  std::vector<float> fill = {0.0F};
  void each_field(OptionVisitor& visit) {
    visit("size", size, "Height and width of the square.");
    visit("fill", fill, "Its value: one for all channels, or one a channel.");
  }
};
// Like Cutout, with `probability` and a rectangle that lies in the image: its area is a part of the image's, drawn
// uniformly, its height by its width drawn by its logarithm. After ten draws that do not fit, none.
struct RandomErasing {
  static constexpr const char* kName = "random_erasing";
  static constexpr const char* kDoc =
      "Sets a rectangle of random area and aspect ratio to a value, with this probability.";
  float probability = 0.5F;
  std::array<float, 2> area = {0.02F, 0.33F};
  std::array<float, 2> ratio = {0.3F, 3.3F};
  std::vector<float> fill = {0.0F};
  void each_field(OptionVisitor& visit) {
    visit("probability", probability, "The probability of erasing a part of an image.");
    visit("area", area, "The minimum and maximum area, as a part of the image's.");
    visit("ratio", ratio, "The minimum and maximum height by width.");
    visit("fill", fill, "The value of erased pixels: one for all channels, or one a channel.");
  }
};
// Encodes the class number i64 as a vector f32: 1 - s + s / classes at its place and s / classes elsewhere, s
// being the smoothing. A number that is not a class is a DataError naming the record.
struct OneHot {
  static constexpr const char* kName = "one_hot";
  static constexpr const char* kDoc = "The label as a vector of float32, smoothed.";
  static constexpr int kRequired = 1;
  int classes = 10;
  float smoothing = 0;
  std::string field = "label";
  void each_field(OptionVisitor& visit) {
    visit("classes", classes, "The number of classes.");
    visit("smoothing", smoothing, "What is spread evenly over all classes.");
    visit("field", field, "The field of class numbers.");
  }
};
// Blends each example of a global batch (hence after batch()) with a partner, l x + (1 - l) y, image and label
// alike, l drawn from Beta(alpha, alpha). Needs one_hot() labels. Pairs are drawn at random for each batch, and
// the two of a pair take each other with one l; of an odd number of examples one stays unchanged. A pair is mixed
// at all with `probability`.
struct Mixup {
  static constexpr const char* kName = "mixup";
  static constexpr const char* kDoc =
      "After batch(): blends each example and its label with a partner's. Needs one_hot() labels.";
  float alpha = 0.2F;
  float probability = 1;
  void each_field(OptionVisitor& visit) {
    visit("alpha", alpha, "Both parameters of the beta distribution.");
    visit("probability", probability, "The probability of mixing a pair at all.");
  }
};
// Like Mixup, but the pair exchanges a rectangle of the images' shape and (1 - l) of their area around a random
// pixel, clipped at the border; labels are blended by the area left.
struct Cutmix {
  static constexpr const char* kName = "cutmix";
  static constexpr const char* kDoc =
      "After batch(): pairs of examples exchange a rectangle; labels are blended by the area left.";
  float alpha = 1;
  float probability = 1;
  void each_field(OptionVisitor& visit) {
    visit("alpha", alpha, "Both parameters of the beta distribution.");
    visit("probability", probability, "The probability of mixing a pair at all.");
  }
};
// Crops a window of random area and aspect ratio and resizes it (antialiased triangle filter) to size x size.
struct RandomResizedCrop {
  static constexpr const char* kName = "random_resized_crop";
  static constexpr const char* kDoc = "Crops a window of random area and ratio and resizes it to size x size.";
  int size = 224;
  std::array<float, 2> area = {0.08F, 1};
  std::array<float, 2> ratio = {3.0F / 4, 4.0F / 3};
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit("size", size, "Height and width of the result.");
    visit("area", area, "The minimum and maximum area, as a part of the image's.");
    visit("ratio", ratio, "The minimum and maximum width by height.");
  }
};
// Resizes the shorter side to `size` (antialiased triangle filter), keeping the aspect.
struct Resize {
  static constexpr const char* kName = "resize";
  static constexpr const char* kDoc = "Resizes the shorter side (antialiased), keeping the aspect.";
  static constexpr int kRequired = 1;
  int size = 256;
  Along along = {};
  void each_field(OptionVisitor& visit) { visit("size", size, "The shorter side of the result."); }
};
struct ResizeTo {
  static constexpr const char* kName = "resize_to";
  static constexpr const char* kDoc = "Resizes to height x width (antialiased), whatever the aspect.";
  static constexpr int kRequired = 2;
  int height = 224, width = 224;
  Along along = {};
  void each_field(OptionVisitor& visit) {
    visit("height", height, "Height of the result.");
    visit("width", width, "Width of the result.");
  }
};
// Cuts half of the surplus above and to the left; half of an odd surplus is rounded to even, as in torchvision.
struct CenterCrop {
  static constexpr const char* kName = "center_crop";
  static constexpr const char* kDoc = "Cuts out the middle size x size, as torchvision does.";
  static constexpr int kRequired = 1;
  int size = 224;
  Along along = {};
  void each_field(OptionVisitor& visit) { visit("size", size, "Height and width of the result."); }
};

OperationPtr define(PadCrop options);
OperationPtr define(Flip options);
OperationPtr define(Normalize options);
OperationPtr define(Cast options);
OperationPtr define(ToLayout options);
OperationPtr define(LayoutIs options);
OperationPtr define(FlattenSample options);
OperationPtr define(RandomResizedCrop options);
OperationPtr define(Resize options);
OperationPtr define(ResizeTo options);
OperationPtr define(CenterCrop options);
OperationPtr define(ColorJitter options);
OperationPtr define(Grayscale options);
OperationPtr define(GaussianBlur options);
OperationPtr define(VerticalFlip options);
OperationPtr define(RandomRotation options);
OperationPtr define(RandomAffine options);
OperationPtr define(Invert options);
OperationPtr define(Posterize options);
OperationPtr define(Solarize options);
OperationPtr define(AdjustSharpness options);
OperationPtr define(Autocontrast options);
OperationPtr define(Equalize options);
OperationPtr define(RandAugment options);
OperationPtr define(TrivialAugmentWide options);
OperationPtr define(PerImageStandardization options);
OperationPtr define(RandomErasing options);
OperationPtr define(BrightnessContrast options);
OperationPtr define(Cutout options);
OperationPtr define(OneHot options);
OperationPtr define(Mixup options);
OperationPtr define(Cutmix options);

Operations pad_crop(int size, int pad, Padding padding = Padding::kZero);
Operations flip(float probability = 0.5F);
// Mirrors in one of any two consecutive passes, so that they show a record both ways.
Operations alternating_flip();
Operations normalize(std::vector<float> mean, std::vector<float> std);
Operations cast(DType to);
Operations to_layout(ImageLayout layout);
Operations layout_is(ImageLayout layout, std::string field = "image");
Operations flatten();
Operations random_resized_crop(RandomResizedCrop options = {});
Operations resize(int size);
Operations resize(int height, int width);
Operations center_crop(int size);
Operations color_jitter(ColorJitter options);
Operations grayscale(Grayscale options = {});
Operations gaussian_blur(GaussianBlur options = {});
Operations vertical_flip(float probability = 0.5F);
Operations random_rotation(RandomRotation options);
Operations random_affine(RandomAffine options);
Operations invert(float probability = 0.5F);
Operations posterize(int bits, float probability = 0.5F);
Operations solarize(float threshold = 128, float probability = 0.5F);
Operations adjust_sharpness(float factor, float probability = 0.5F);
Operations autocontrast(float probability = 0.5F);
Operations equalize(float probability = 0.5F);
Operations rand_augment(RandAugment options = {});
Operations trivial_augment_wide(TrivialAugmentWide options = {});
Operations per_image_standardization();
Operations random_erasing(RandomErasing options = {});
Operations brightness_contrast(BrightnessContrast options);
Operations cutout(int size, std::vector<float> fill = {0.0F});
Operations one_hot(int classes, float smoothing = 0);
Operations mixup(Mixup options = {});
Operations cutmix(Cutmix options = {});

}  // namespace headrace
