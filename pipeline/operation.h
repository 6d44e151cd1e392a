// Operations on one sample between decode and batch, or on the examples of a batch together. They are plain values
// that describe; the planner compiles them. Random ones draw from Philox(seed, epoch, record, position in the
// plan).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/record.h"

namespace HEADRACE_API headrace {

// What becomes of a box of which nothing is left in the image.
enum class LostBoxes {
  kZero,  // four zeros in its place, so that other fields with a row for each box stay in line
  kDrop,  // the boxes after it move up; in a field of fixed length zeros follow them
};
// Fields that an operation moves with the image: crops, mirrors and resizes by the same random numbers. A box is
// there if its right is above its left.
struct Along {
  // (H, W, C) of any type, as high and wide as the image. Each number of the result is one of the mask's: i of n
  // is that at floor(i m / n) of the window's m, or of a turned one the nearest. Padding is 0, or reflected.
  std::vector<std::string> masks = {};
  // (N, 4) or (4): left, top, right, bottom in pixels; f32 afterwards, clipped to the image; around a turned box.
  std::vector<std::string> boxes = {};
  LostBoxes lost = LostBoxes::kZero;
  // With kDrop: fields with a row for each box, whose rows are dropped with it. Where another field of the sample
  // could have a row for each box, they must be named; the boxes' own name says that no other field has. A field
  // `<name>_length` of these fields or the boxes, as padded_batch() adds it, becomes the number of rows that
  // remain.
  std::vector<std::string> with_boxes = {};

  bool empty() const noexcept { return masks.empty() && boxes.empty(); }
};

enum class Padding { kZero, kReflect };

// Pads by `pad` on each side and crops a random `size` x `size` window.
struct PadCrop {
  int size = 32;
  int pad = 4;
  Padding padding = Padding::kZero;
  Along along = {};
};
// How a pixel is made of those around the point that it comes from.
enum class Interpolation {
  kNearest,   // the pixel that the point lies in
  kBilinear,  // the four whose middles are around it, by their distances
};
enum class FlipDraw {
  kEachPass,     // drawn again in each pass
  kAlternating,  // drawn once per record, for pass 0; inverted from pass to pass
};
// Mirrors left-right with `probability`.
struct Flip {
  float probability = 0.5F;
  FlipDraw draw = FlipDraw::kEachPass;
  Along along = {};
};
// Turns upside down with `probability`.
struct VerticalFlip {
  float probability = 0.5F;
  Along along = {};
};
// Turns a u8 image around its middle by an angle drawn uniformly, counter-clockwise, with `probability`; the size
// stays. `fill` shows where nothing comes from, between whose middles and the image's bilinear pixels blend: one
// number, or one per channel, of four at most.
struct RandomRotation {
  float min_degrees = -10, max_degrees = 10;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  float probability = 1;
  Along along = {};
};
// Like RandomRotation, by torchvision's affine(): sheared along both axes, turned clockwise, scaled, and moved by
// whole pixels, up to translate_x of the width and translate_y of the height either way. All drawn uniformly.
// Degrees of shear lie within -90 and 90.
struct RandomAffine {
  float min_degrees = 0, max_degrees = 0;
  float translate_x = 0, translate_y = 0;
  float min_scale = 1, max_scale = 1;
  float min_shear_x = 0, max_shear_x = 0;
  float min_shear_y = 0, max_shear_y = 0;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
  float probability = 1;
  Along along = {};
};
// Normalises: (x / 255 - mean[c]) / std[c] for u8, (x - mean[c]) / std[c] for f32; the result is f32, and exactly
// this: x s + t in f32, the product rounded before the sum, with s = 1 / (255 std[c]) for u8 or 1 / std[c] for f32
// and t = -mean[c] / std[c], each computed in double from the given floats and rounded once to f32. Equal on every
// processor and device; differs from dividing twice in f32, as torchvision does, by a unit or two in the last
// place. One entry for all channels, or one per channel.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> std;
};
// Changes the element type; u8 -> f32 keeps the value (no scaling), f32 -> u8 rounds and saturates.
struct Cast {
  DType to = DType::kF32;
};
// Converts between (H, W, C) and (C, H, W).
struct ToLayout {
  ImageLayout to = ImageLayout::kChannelsFirst;
};
// Says where the channels of the field's images are, and changes nothing. Images are channels last where nothing
// else is said: by this, by to_layout(), or by a user's function.
struct LayoutIs {
  ImageLayout layout = ImageLayout::kChannelsFirst;
  std::string field = "image";
};
// Flattens any shape to one axis.
struct FlattenSample {};
// Changes an RGB image's colours randomly in torchvision's ranges: factors uniform in [max(0, 1 - x), 1 + x], the
// hue turned by up to `hue` (at most 0.5) of the circle either way. 0 leaves a property alone. The four are
// applied in an order drawn for each record, each to the result of the previous one, clamped to 0..255 and rounded
// once at the end. Brightness v f; contrast m + (v - m) f, m the image's mean luma; saturation l + (v - l) f, l
// the pixel's luma, 0.299 R + 0.587 G + 0.114 B; hue in HSV.
struct ColorJitter {
  float brightness = 0, contrast = 0, saturation = 0;
  float hue = 0;
  float probability = 1;  // to change an image at all
};
// Replaces the colours of an RGB image by their grey, 0.299 R + 0.587 G + 0.114 B, with `probability`: in each of
// three channels, or in 1.
struct Grayscale {
  int channels = 3;
  float probability = 1;
};
// Blurs a u8 image with `probability`: the weights of a normal distribution whose deviation is drawn uniformly,
// over a square of kernel_size pixels a side (odd, at most 127); beyond the border pixels are reflected.
struct GaussianBlur {
  int kernel_size = 23;
  float min_sigma = 0.1F, max_sigma = 2;
  float probability = 1;
};
// These change a u8 image with `probability`, as Pillow's ImageOps and ImageEnhance do.
// 255 - v.
struct Invert {
  float probability = 0.5F;
};
// Keeps the highest `bits` of each level, 0 to 8, and clears the others.
struct Posterize {
  int bits = 4;
  float probability = 0.5F;
};
// 255 - v where v is at least the threshold.
struct Solarize {
  float threshold = 128;
  float probability = 0.5F;
};
// s + (v - s) f rounded down, s the mean of the pixel (five times) and its eight neighbours; not at the border.
struct AdjustSharpness {
  float factor = 2;
  float probability = 0.5F;
};
// Spreads each channel's levels until they reach from 0 to 255.
struct Autocontrast {
  float probability = 0.5F;
};
// Spreads each channel's levels by how often they occur.
struct Equalize {
  float probability = 0.5F;
};
// Does `operations` operations to a u8 RGB image, one after another, each drawn from torchvision's 14 (identity,
// shear and translate along each axis, rotate, brightness, colour, contrast, sharpness, posterize, solarize,
// autocontrast, equalize), with the magnitude number `magnitude` of `bins` from none to the full one and a random
// sign.
struct RandAugment {
  int operations = 2;
  int magnitude = 9;
  int bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
};
// Does one operation to a u8 RGB image: drawn from RandAugment's with a wider range of magnitudes, of which one of
// `bins` is drawn, too.
struct TrivialAugmentWide {
  int bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<float> fill = {0.0F};
};
// (x - m) / max(s, 1 / sqrt(n)): m the mean of the image's n numbers, s their standard deviation; f32.
struct PerImageStandardization {};
// Changes all numbers of an f32 image by values drawn for its record: (x + b) c, b uniform in [-brightness,
// brightness], c in [1 - contrast, 1 + contrast]. For normalised images, whose mean is 0.
struct BrightnessContrast {
  float brightness = 0, contrast = 0;
};
// Sets a square around a random pixel, clipped at the border, to a value: one for all channels, or one per
// channel, in the units of the elements at this place of the chain. Either layout.
struct Cutout {
  int size = 8;
  std::vector<float> fill = {0.0F};
};
// Like Cutout, with `probability` and a rectangle that lies in the image: its area is a part of the image's, drawn
// uniformly, its height by its width drawn by its logarithm. After ten draws that do not fit, none.
struct RandomErasing {
  float probability = 0.5F;
  float min_area = 0.02F, max_area = 0.33F;
  float min_ratio = 0.3F, max_ratio = 3.3F;
  std::vector<float> fill = {0.0F};
};
// Encodes the class number i64 as a vector f32: 1 - s + s / classes at its place and s / classes elsewhere, s
// being the smoothing. A number that is not a class is a DataError naming the record.
struct OneHot {
  int classes = 10;
  float smoothing = 0;
  std::string field = "label";
};
// Blends each example of a global batch (hence after batch()) with a partner, l x + (1 - l) y, image and label
// alike, l drawn from Beta(alpha, alpha). Needs one_hot() labels. Pairs are drawn at random for each batch, and
// the two of a pair take each other with one l; of an odd number of examples one stays unchanged. A pair is mixed
// at all with `probability`.
struct Mixup {
  float alpha = 0.2F;
  float probability = 1;
};
// Like Mixup, but the pair exchanges a rectangle of the images' shape and (1 - l) of their area around a random
// pixel, clipped at the border; labels are blended by the area left.
struct Cutmix {
  float alpha = 1;
  float probability = 1;
};
// Crops a window of random area and aspect ratio and resizes it (antialiased triangle filter) to size x size.
struct RandomResizedCrop {
  int size = 224;
  float min_area = 0.08F, max_area = 1.0F;
  float min_ratio = 3.0F / 4, max_ratio = 4.0F / 3;
  Along along = {};
};
// Resizes the shorter side to `size` (antialiased triangle filter), keeping the aspect.
struct Resize {
  int size = 256;
  Along along = {};
};
// Resizes to height x width (the same filter), whatever the aspect was.
struct ResizeTo {
  int height = 224, width = 224;
  Along along = {};
};
// Cuts half of the surplus above and to the left; half of an odd surplus is rounded to even, as in torchvision.
struct CenterCrop {
  int size = 224;
  Along along = {};
};
// A custom function on one field, which keeps its name: reads `in`, fills `out`; UserOperation does more. Must be
// pure: same input and random numbers, same output. `version` is part of every fingerprint: change it with the
// function.
struct UserMap {
  std::string name = {};
  std::uint32_t version = 1;
  std::string field = "image";
  Field output = {};  // dtype and shape of the result; the name is kept
  std::function<void(std::span<const std::byte> in, const Shape& in_shape, std::span<std::byte> out,
                     Philox& random)>
      function = {};
};

// One record as a custom operation sees it. Valid only during the call.
class UserSample {
 public:
  struct Position {
    std::uint64_t record = 0;  // its number in the source
    std::uint64_t pass = 0;    // zero-based pass number over the run; 0 if the operation
                               // does not say that it depends on the pass
  };
  struct Input {
    std::span<const std::byte> bytes;
    Shape shape;
  };

  UserSample(const Position& position, std::span<const Input> inputs, std::span<const Field> outputs,
             std::span<const std::span<std::byte>> room, Philox& random)
      : position_(position), inputs_(inputs), outputs_(outputs), room_(room), random_(&random) {}

  const Position& position() const noexcept { return position_; }
  // Returns the generator; its numbers depend on the record and pass, not on which thread runs it or when.
  Philox& random() noexcept { return *random_; }

  // Return the fields named in UserOperation::inputs, in that order; an encoded image's shape is its byte count.
  std::span<const std::byte> bytes(std::size_t input) const { return inputs_[input].bytes; }
  const Shape& shape(std::size_t input) const { return inputs_[input].shape; }
  template <typename Element>
  std::span<const Element> elements(std::size_t input) const {
    const std::span<const std::byte> all = bytes(input);
    return {reinterpret_cast<const Element*>(all.data()), all.size() / sizeof(Element)};
  }

  // Returns all of an output, uninitialised; it must be filled before the function returns.
  std::span<std::byte> room(std::size_t output) {
    written_ |= std::uint64_t{1} << output;
    return room_[output];
  }
  // Throws Error if the elements are fewer or more than the output has.
  void put(std::size_t output, std::span<const std::byte> elements);

  // Throws Error naming an output that was neither put nor given room for.
  void want_all_written() const;

 private:
  Position position_;
  std::span<const Input> inputs_;
  std::span<const Field> outputs_;
  std::span<const std::span<std::byte>> room_;
  Philox* random_;
  std::uint64_t written_ = 0;  // one bit per output
};

// A custom operation on any fields of a sample: it reads some, replaces some and adds others. It must be pure and
// thread-safe: its output depends on its inputs and, if `each_pass_anew` says so, on the pass and the random
// numbers. An exception counts as its record's fault, for LoaderOptions::errors to handle. `version` is part of
// every fingerprint: change it with the function.
struct UserOperation {
  std::string name = {};
  std::uint32_t version = 1;
  std::vector<std::string> inputs = {"image"};
  // Fields of fixed shape. One with the name of an existing field replaces it; any other is a new field.
  std::vector<Field> outputs = {};
  // True if it draws random numbers or looks at the pass: then it cannot stand before cache().
  bool each_pass_anew = false;
  std::function<void(UserSample&)> function = {};
};

// Returns where custom code may keep something for its later calls on this thread, such as another language's
// state of the thread; null on a thread that no engine runs. It is destroyed on this thread, at the latest when
// the engine's work there ends, and like custom code it may take its time.
std::shared_ptr<void>* kept_by_user_code() noexcept;

// The engine's implementation of an operation; private to the pipeline.
class OperationDefinition;
class OptionVisitor;
using OperationPtr = std::shared_ptr<const OperationDefinition>;

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
OperationPtr define(UserMap options);
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
OperationPtr define(UserOperation options);

// Options that define an operation.
template <typename Options>
concept DefinesOperation = requires(Options options) {
  { define(std::move(options)) } -> std::same_as<OperationPtr>;
};

// Immutable; copies share it.
class Operation {
 public:
  template <DefinesOperation Options>
  Operation(Options options) : definition_(define(std::move(options))) {}  // NOLINT: implicit by design
  explicit Operation(OperationPtr definition) : definition_(std::move(definition)) {}

  const OperationDefinition& definition() const noexcept { return *definition_; }

 private:
  OperationPtr definition_;
};

// A chain, applied left to right: pad_crop(32, 4) | flip() | normalize(mean, std).
class Operations {
 public:
  Operations(Operation operation) : list_{std::move(operation)} {}  // NOLINT: implicit by design

  const std::vector<Operation>& list() const noexcept { return list_; }

  // Returns the chain with these fields moved along by each operation that moves pixels: (random_resized_crop() |
  // flip() | normalize(mean, std)).along({.masks = {"seg"}}). Throws ConfigError if there is none.
  Operations along(const Along& fields) const;

  friend Operations operator|(Operations left, const Operations& right) {
    left.list_.insert(left.list_.end(), right.list_.begin(), right.list_.end());
    return left;
  }

 private:
  std::vector<Operation> list_;
};

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
Operations user_map(UserMap map);
Operations user_operation(UserOperation operation);
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
// Returns the operation that a plan's JSON calls `name`, with options as the visitor sets them. Throws ConfigError
// if there is no operation of this name.
Operations operation(std::string_view name, OptionVisitor& options);
// The same with options as in the plan's JSON, `{"size": 32}`; nothing stands for all defaults. Throws ConfigError
// naming the place, as `pad_crop.size`.
Operations operation(std::string_view name, std::string_view options = {});

// Returns whether the result depends on random numbers: such an operation cannot stand before cache(). A user map
// counts as not random; one before cache() that draws a number nevertheless fails the run.
bool is_random(const Operation& operation);
// The field that holds the class, and that mixup() and cutmix() blend.
inline const std::string kLabelField = "label";

// Returns whether it works on the examples of a batch together: then it must stand after batch().
bool is_batch_level(const Operation& operation);
// Returns the name of the field it changes: for a batch-level operation the image (its labels follow); empty for a
// custom operation, which may change several.
const std::string& field_of(const Operation& operation);
// Returns "pad_crop(32, pad=4, zero)": name and parameters, for explain() and as fingerprint material.
std::string describe(const Operation& operation);
// Returns the field after the operation. Throws ConfigError if it cannot be applied to such a field.
Field apply_to_field(const Operation& operation, const Field& field);

}  // namespace headrace
