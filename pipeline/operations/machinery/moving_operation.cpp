#include "headrace/pipeline/operations/machinery/moving_operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/kernels/moved_pixels.h"
#include "headrace/pipeline/operations/kernels/warp_kernels.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"

namespace headrace {
namespace {

class WindowMover final : public PixelMover {
 public:
  WindowMover(std::shared_ptr<const WindowChange> change, ImageBorder border)
      : change_(std::move(change)), border_(border) {}

  PixelMove move(const ImageSize& image, const StepContext& context) const override {
    CropWindow window{.height = image.height + 2 * border_.pixels, .width = image.width + 2 * border_.pixels};
    change_->change(window, context);
    return {.window = {.top = window.top - border_.pixels,
                       .left = window.left - border_.pixels,
                       .height = window.height,
                       .width = window.width},
            .size = {.height = window.height, .width = window.width},
            .mirrored = window.mirrored,
            .padding = border_.padding};
  }

 private:
  std::shared_ptr<const WindowChange> change_;
  ImageBorder border_;
};

// A field that is moved along.
struct MovedField {
  std::size_t place = 0;  // in the sample
  Field before;
  std::optional<std::size_t> length = {};  // the place of its `<name>_length`, of rows that lost boxes may leave

  // Returns whether the sample has as many rows as are left. Those of a bucket are padded, to its length.
  bool varies(const StepContext& context) const {
    return before.shape.is_dynamic() && (!length || context.ragged != nullptr);
  }
};

class AlongStep final : public SampleStep {
 public:
  AlongStep(std::size_t image, std::unique_ptr<const Step> image_step, std::shared_ptr<const PixelMover> mover,
            LostBoxes lost)
      : image_(image), image_step_(std::move(image_step)), mover_(std::move(mover)), lost_(lost) {}

  void add_mask(MovedField field) { masks_.push_back(std::move(field)); }
  void add_boxes(MovedField field) { boxes_.push_back(std::move(field)); }
  void add_rows(MovedField field) { rows_.push_back(std::move(field)); }

  void run(SampleView sample, const StepContext& context) const override {
    Scratch& scratch = *context.scratch;
    const FieldView image = sample[image_];
    const ImageSize size{.height = image.shape[0], .width = image.shape[1]};
    const PixelMove move = mover_->move(size, context);
    StepOutput output(scratch, scratch.results[0]);
    sample[image_] = image_step_->run(image, context, output);
    std::swap(scratch.results[0], scratch.fields[image_]);  // the view follows its bytes
    for (const MovedField& mask : masks_) move_mask(mask, size, move, sample[mask.place], scratch);
    for (const MovedField& boxes : boxes_) move_boxes(boxes, move, sample, context);
  }

 private:
  static void move_mask(const MovedField& mask, const ImageSize& size, const PixelMove& move, FieldView& view,
                        Scratch& scratch) {
    if (view.shape[0] != size.height || view.shape[1] != size.width) {
      throw Error(ErrorCode::kDataCorrupt,
                  fmt::format("the mask '{}' has {} x {} pixels and its image {} x {}", mask.before.name,
                              view.shape[0], view.shape[1], size.height, size.width),
                  "a mask is as high and as wide as its image");
    }
    const std::int64_t channels = view.shape[2];
    const auto pixel = static_cast<std::size_t>(channels) * size_of(mask.before.dtype);
    const auto pixels = static_cast<std::size_t>(move.size.height * move.size.width);
    const std::span<std::byte> out = scratch.grow(scratch.made, pixels * pixel);
    if (move.source) {
      const std::span<std::byte> zeros = scratch.grow(scratch.decoded, pixel);
      std::ranges::fill(zeros, std::byte{0});
      warp_nearest({.from = view.bytes.data(),
                    .height = size.height,
                    .width = size.width,
                    .pixel_bytes = pixel,
                    .source = *move.source,
                    .fill = zeros.data(),
                    .to = out.data()});
    } else {
      move_pixels({.from = view.bytes.data(),
                   .height = size.height,
                   .width = size.width,
                   .pixel_bytes = pixel,
                   .window = move.window,
                   .reflects = move.padding == Padding::kReflect,
                   .mirrored = move.mirrored,
                   .size = move.size,
                   .to = out.data()});
    }
    view = {.bytes = out, .shape = {move.size.height, move.size.width, channels}};
    std::swap(scratch.made, scratch.fields[mask.place]);
  }

  void move_boxes(const MovedField& boxes, const PixelMove& move, SampleView sample,
                  const StepContext& context) const {
    Scratch& scratch = *context.scratch;
    FieldView& view = sample[boxes.place];
    const std::size_t count = view.bytes.size() / (4 * size_of(boxes.before.dtype));
    std::vector<std::size_t> left;  // the boxes that are kept, where rows go with them
    const std::span<std::byte> out = scratch.grow(scratch.made, count * 4 * sizeof(float));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<Box> box = moved(load_box(view.bytes, i, boxes.before.dtype), move);
      if (!box && lost_ == LostBoxes::kDrop) continue;
      store_box(box.value_or(Box{}), out, kept++);
      if (!rows_.empty()) left.push_back(i);
    }
    const bool varies = boxes.varies(context);
    const std::size_t rows = varies ? kept : count;
    for (std::size_t i = kept; i < rows; ++i) store_box({}, out, i);
    view.bytes = out.first(rows * 4 * sizeof(float));
    if (varies) view.shape = Shape{static_cast<std::int64_t>(rows), 4};
    std::swap(scratch.made, scratch.fields[boxes.place]);
    write_length(boxes, kept, sample, scratch);
    for (const MovedField& field : rows_) {
      keep_rows(field, left, count, sample[field.place], context);
      write_length(field, kept, sample, scratch);
    }
  }

  static void write_length(const MovedField& field, std::size_t kept, SampleView sample, Scratch& scratch) {
    if (!field.length) return;
    const auto length = static_cast<std::int64_t>(kept);
    const std::span<std::byte> out = scratch.grow(scratch.fields[*field.length], sizeof length);
    std::memcpy(out.data(), &length, sizeof length);
    sample[*field.length].bytes = out;
  }

  // Keeps these of the `count` rows; in a field of fixed length zeros follow them.
  static void keep_rows(const MovedField& field, const std::vector<std::size_t>& left, std::size_t count,
                        FieldView& view, const StepContext& context) {
    Scratch& scratch = *context.scratch;
    if (view.shape[0] != static_cast<std::int64_t>(count)) {
      throw Error(ErrorCode::kDataCorrupt,
                  fmt::format("the field '{}' has {} rows for {} boxes", field.before.name, view.shape[0], count),
                  "fields of with_boxes have a row for each box");
    }
    const std::size_t row = count == 0 ? 0 : view.bytes.size() / count;
    const bool varies = field.varies(context);
    const std::span<std::byte> out = scratch.grow(scratch.made, (varies ? left.size() : count) * row);
    std::ranges::fill(out, std::byte{0});
    for (std::size_t i = 0; i < left.size(); ++i) {
      std::ranges::copy(view.bytes.subspan(left[i] * row, row), out.subspan(i * row).begin());
    }
    if (varies) {
      std::vector<std::int64_t> extents(view.shape.extents().begin(), view.shape.extents().end());
      extents[0] = static_cast<std::int64_t>(left.size());
      view.shape = Shape(extents);
    }
    view.bytes = out;
    std::swap(scratch.made, scratch.fields[field.place]);
  }

  // Returns the box as the result shows it; std::nullopt if nothing of it is left.
  static std::optional<Box> moved(const Box& box, const PixelMove& move) {
    if (!(box.right > box.left && box.bottom > box.top)) return std::nullopt;
    if (move.source) return around(box, inverse_of(*move.source), move.size);
    const auto along = [](double at, std::int64_t begin, std::int64_t input, std::int64_t output) {
      const double scaled =
          (at - static_cast<double>(begin)) * static_cast<double>(output) / static_cast<double>(input);
      return std::clamp(scaled, 0.0, static_cast<double>(output));
    };
    const auto x = [&](double at) { return along(at, move.window.left, move.window.width, move.size.width); };
    const auto y = [&](double at) { return along(at, move.window.top, move.window.height, move.size.height); };
    Box result{.left = x(box.left), .top = y(box.top), .right = x(box.right), .bottom = y(box.bottom)};
    if (move.mirrored) {
      const auto width = static_cast<double>(move.size.width);
      result.left = width - std::exchange(result.right, width - result.left);
    }
    if (!(result.right > result.left && result.bottom > result.top)) return std::nullopt;
    return result;
  }

  // Returns the smallest upright box around what the map makes of the box, clipped; std::nullopt if it is empty.
  static std::optional<Box> around(const Box& box, const AffineMap& map, const ImageSize& size) {
    const Point corners[] = {map({.x = box.left, .y = box.top}), map({.x = box.right, .y = box.top}),
                             map({.x = box.left, .y = box.bottom}), map({.x = box.right, .y = box.bottom})};
    const auto [left, right] = std::ranges::minmax(corners, {}, &Point::x);
    const auto [top, bottom] = std::ranges::minmax(corners, {}, &Point::y);
    const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
    const Box result{.left = std::clamp(left.x, 0.0, width),
                     .top = std::clamp(top.y, 0.0, height),
                     .right = std::clamp(right.x, 0.0, width),
                     .bottom = std::clamp(bottom.y, 0.0, height)};
    if (!(result.right > result.left && result.bottom > result.top)) return std::nullopt;
    return result;
  }

  std::size_t image_;
  std::unique_ptr<const Step> image_step_;
  std::shared_ptr<const PixelMover> mover_;
  LostBoxes lost_;
  std::vector<MovedField> masks_, boxes_;
  std::vector<MovedField> rows_;  // fields with a row for each box, of which lost ones are dropped
};

[[noreturn]] void refuse_along(const OperationDefinition& operation, const Field& field, const std::string& why,
                               const std::string& hint) {
  throw ConfigError(fmt::format("{}: field '{}' {} {} {}", operation.describe(), field.name,
                                to_string(field.dtype), field.shape.to_string(), why),
                    hint);
}

void want_mask(const OperationDefinition& operation, const Field& mask) {
  if (mask.encoding == Encoding::kImage) {
    refuse_along(operation, mask, "is still encoded", "call decode() before map()");
  }
  if (mask.shape.rank() != 3 || has_doubtful_layout(mask) || layout_of(mask) != ImageLayout::kChannelsLast) {
    refuse_along(operation, mask, "is no mask", "a mask is (height, width, channels), as its image");
  }
}

void want_boxes(const OperationDefinition& operation, const Field& boxes) {
  const Shape& shape = boxes.shape;
  const bool fits =
      boxes.encoding == Encoding::kRaw && (shape.rank() == 1 || shape.rank() == 2) && shape.back() == 4;
  const bool typed = boxes.dtype == DType::kF32 || boxes.dtype == DType::kI32 || boxes.dtype == DType::kI64;
  if (!fits || !typed) {
    refuse_along(operation, boxes, "holds no boxes",
                 "boxes are (N, 4) or (4), of f32, i32 or i64: left, top, right, bottom");
  }
}

// Checks that the fields which lose a row with each lost box are known.
void want_rows(const OperationDefinition& operation, const Along& along, const Fields& fields) {
  if (along.with_boxes.empty() && (along.lost == LostBoxes::kZero || along.boxes.empty())) return;
  if (!along.with_boxes.empty() && (along.lost == LostBoxes::kZero || along.boxes.size() != 1)) {
    throw ConfigError(
        fmt::format("{}: with_boxes is for lost_boxes = drop and one field of boxes", operation.describe()),
        "without drop, rows stay in line with their boxes");
  }
  const auto is_among = [](const std::vector<std::string>& names, const Field& field) {
    return std::ranges::count(names, field.name) > 0;
  };
  for (const std::string& name : along.boxes) {
    const Field& boxes = fields[find_field(fields, name)];
    if (boxes.shape.rank() != 2) continue;
    for (const std::string& row : along.with_boxes) {
      const Field& field = fields[find_field(fields, row)];
      const bool fits =
          field.encoding == Encoding::kRaw && field.shape.rank() > 0 && field.shape[0] == boxes.shape[0];
      if (fits && field.name != operation.field() && !is_among(along.masks, field)) continue;
      refuse_along(operation, field, "has no row for each box", "fields of with_boxes are as long as the boxes");
    }
    if (!along.with_boxes.empty()) continue;
    for (const Field& field : fields) {
      const bool moved =
          field.name == operation.field() || is_among(along.boxes, field) || is_among(along.masks, field);
      if (moved || field.encoding == Encoding::kImage || field.shape.rank() == 0 ||
          field.shape[0] != boxes.shape[0])
        continue;
      refuse_along(
          operation, field, "may have a row for each box, and lost boxes are dropped",
          fmt::format("name the fields that have: with_boxes=[\"{}\"]; with_boxes=[\"{}\"] says that none has",
                      field.name, name));
    }
  }
}

}  // namespace

std::shared_ptr<const PixelMover> window_mover(std::shared_ptr<const WindowChange> change, ImageBorder border) {
  return std::make_shared<WindowMover>(std::move(change), border);
}

Fields move_along(const OperationDefinition& operation, const Along& along, Fields fields, const Field& image) {
  std::vector<std::string> names{image.name};
  const Field result = image;  // `fields` holds it
  want_rows(operation, along, fields);
  const auto take = [&](const std::string& name) -> Field& {
    if (std::ranges::count(names, name) > 0) {
      throw ConfigError(fmt::format("{}: field '{}' is moved twice", operation.describe(), name),
                        "name each field once, and not the image");
    }
    names.push_back(name);
    return fields[find_field(fields, name)];
  };
  for (const std::string& name : along.masks) {
    Field& mask = take(name);
    want_mask(operation, mask);
    mask.shape = Shape{result.shape[0], result.shape[1], mask.shape[2]};
    mask.layout = ImageLayout::kChannelsLast;
  }
  for (const std::string& name : along.boxes) {
    Field& boxes = take(name);
    want_boxes(operation, boxes);
    boxes.dtype = DType::kF32;
  }
  return fields;
}

std::unique_ptr<const SampleStep> along_step(const Along& along, const Fields& before, const std::string& image,
                                             std::unique_ptr<const Step> image_step,
                                             std::shared_ptr<const PixelMover> mover) {
  auto step =
      std::make_unique<AlongStep>(find_field(before, image), std::move(image_step), std::move(mover), along.lost);
  const auto field = [&](const std::string& name) {
    const std::size_t place = find_field(before, name);
    MovedField moved{.place = place, .before = before[place]};
    const auto length = std::ranges::find_if(before, [&](const Field& each) {
      return each.name == name + "_length" && each.dtype == DType::kI64 && each.shape.rank() == 0;
    });
    if (along.lost == LostBoxes::kDrop && length != before.end()) {
      moved.length = static_cast<std::size_t>(length - before.begin());
    }
    return moved;
  };
  for (const std::string& name : along.masks) step->add_mask(field(name));
  for (const std::string& name : along.boxes) step->add_boxes(field(name));
  for (const std::string& name : along.with_boxes) {
    if (std::ranges::count(along.boxes, name) == 0) step->add_rows(field(name));
  }
  return step;
}

Operations Operations::along(const Along& fields) const {
  std::optional<Operations> chain;
  bool moves = false;
  for (const Operation& operation : list_) {
    OperationPtr with = operation.definition().with_along(fields);
    moves = moves || with != nullptr;
    Operations one{with != nullptr ? Operation(std::move(with)) : operation};
    chain = chain ? *chain | one : std::move(one);
  }
  if (moves) return *chain;
  throw ConfigError("along(): no operation of the chain moves pixels",
                    "crops, flips, rotations and resizes do: (random_resized_crop() | flip()).along(...)");
}

}  // namespace headrace
