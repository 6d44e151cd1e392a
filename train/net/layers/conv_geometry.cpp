#include "headrace/train/net/layers/conv_geometry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kMaxSpan = 1 << 16;          // pixels; more is a mistake
constexpr HeightWidth kUsualPadding = -1;  // of an output

// A window along one axis.
struct Axis {
  int kernel, stride, dilation;
  ConvPadding padding;
  int pixels;

  // Returns the pixels from the first tap to the last one.
  int span() const noexcept { return (kernel - 1) * dilation + 1; }
};

Axis vertical(const ConvWindow& w) {
  return {w.kernel.height, w.stride.height, w.dilation.height, w.padding, w.pixels.height};
}
Axis horizontal(const ConvWindow& w) {
  return {w.kernel.width, w.stride.width, w.dilation.width, w.padding, w.pixels.width};
}

// Returns the pixels of padding on each side; for kSame, where they depend on the extents, 0.
int fixed_padding(const Axis& axis) {
  if (axis.padding == ConvPadding::kEven) return (axis.span() - 1) / 2;
  return axis.padding == ConvPadding::kPixels ? axis.pixels : 0;
}

std::int64_t convolved_extent(std::int64_t input, const Axis& axis) {
  const bool keeps = axis.padding == ConvPadding::kSame || axis.padding == ConvPadding::kEven;
  const std::int64_t room = keeps ? input - 1 : input + 2 * fixed_padding(axis) - axis.span();
  return room < 0 ? 0 : room / axis.stride + 1;
}

struct Sides {
  int before = 0, after = 0;
};

// Returns the padding with which a convolution of `input` gives `output`.
Sides padding_between(std::int64_t input, std::int64_t output, const Axis& axis) {
  if (axis.padding != ConvPadding::kSame) return {fixed_padding(axis), fixed_padding(axis)};
  const std::int64_t reach = (output - 1) * axis.stride + axis.span();
  const int both = static_cast<int>(std::max<std::int64_t>(0, reach - input));
  return {both / 2, both - both / 2};
}

ConvOptions options_between(const Shape& input, const Shape& output, const ConvWindow& window,
                            Precision precision) {
  const Axis down = vertical(window), right = horizontal(window);
  const Sides rows = padding_between(input[0], output[0], down);
  const Sides columns = padding_between(input[1], output[1], right);
  // A single tap has no neighbours.
  const HeightWidth dilation{down.kernel == 1 ? 1 : down.dilation, right.kernel == 1 ? 1 : right.dilation};
  return {.stride = window.stride,
          .dilation = dilation,
          .pad_top = rows.before,
          .pad_left = columns.before,
          .pad_bottom = rows.after,
          .pad_right = columns.after,
          .groups = window.groups,
          .precision = precision};
}

// Returns "3", or "(1, 7)" of different numbers.
std::string to_text(const HeightWidth& numbers) {
  const std::string height = std::to_string(numbers.height);
  return numbers.height == numbers.width ? height : "(" + height + ", " + std::to_string(numbers.width) + ")";
}

// Returns "kernel 3", with " and dilation 2" if it is not 1.
std::string kernel_text(const ConvWindow& window) {
  const std::string kernel = "kernel " + to_text(window.kernel);
  return window.dilation == 1 ? kernel : kernel + " and dilation " + to_text(window.dilation);
}

bool at_least(int least, const HeightWidth& numbers) { return numbers.height >= least && numbers.width >= least; }

void check_padding(const std::string& who, const ConvWindow& window) {
  const auto even = [](int kernel) { return kernel % 2 == 0; };
  if (window.padding == ConvPadding::kEven && (even(window.kernel.height) || even(window.kernel.width))) {
    throw ConfigError(who + " of kernel " + to_text(window.kernel) + " cannot be padded evenly",
                      "use ConvPadding::kSame or an odd kernel");
  }
  if (window.padding != ConvPadding::kPixels && window.pixels != 0) {
    throw ConfigError(who + " has " + to_text(window.pixels) + " pixels of padding, but its padding is '" +
                          choice_names(window.padding).at(static_cast<std::size_t>(window.padding)) + "'",
                      "use ConvPadding::kPixels, or leave the pixels out");
  }
  if (!at_least(0, window.pixels) || std::max(window.pixels.height, window.pixels.width) > kMaxSpan) {
    throw ConfigError(who + " cannot be padded by " + to_text(window.pixels) + " pixels",
                      "use 0 to " + std::to_string(kMaxSpan));
  }
}

void check_groups(const std::string& who, const Shape& input, int filters, int groups) {
  if (groups >= 1 && input[2] % groups == 0 && filters % groups == 0) return;
  throw ConfigError(who + " has " + std::to_string(groups) + " groups for " + std::to_string(input[2]) +
                        " channels and " + std::to_string(filters) + " filters",
                    "both must be multiples of groups");
}

void check_window(const std::string& who, const Shape& input, int filters, const ConvWindow& window) {
  if (input.rank() != 3) {
    throw ConfigError(who + " needs an input of shape (height, width, channels), got " + input.to_string());
  }
  if (filters < 1 || !at_least(1, window.kernel) || !at_least(1, window.stride)) {
    throw ConfigError(who + " needs filters, kernel and stride of at least 1, got " + std::to_string(filters) +
                      ", " + to_text(window.kernel) + " and " + to_text(window.stride));
  }
  if (!at_least(1, window.dilation)) {
    throw ConfigError(who + " needs a dilation of at least 1, got " + to_text(window.dilation),
                      "1 keeps the kernel's taps together");
  }
  const auto too_long = [](const Axis& axis) { return std::int64_t{axis.kernel - 1} * axis.dilation >= kMaxSpan; };
  if (too_long(vertical(window)) || too_long(horizontal(window))) {
    throw ConfigError(
        who + " of " + kernel_text(window) + " spans more than " + std::to_string(kMaxSpan) + " pixels",
        "use a smaller kernel or dilation");
  }
  check_padding(who, window);
  check_groups(who, input, filters, window.groups);
}

std::int64_t transposed_extent(std::int64_t input, const Axis& axis, std::optional<int> output_padding) {
  const int span = axis.span();
  const std::int64_t reach = (input - 1) * axis.stride + span;
  switch (axis.padding) {
    case ConvPadding::kSame: return output_padding ? reach - span / 2 * 2 + *output_padding : input * axis.stride;
    case ConvPadding::kEven: return output_padding ? reach - (span - 1) + *output_padding : input * axis.stride;
    case ConvPadding::kValid: return reach + output_padding.value_or(std::max(0, axis.stride - span));
    case ConvPadding::kPixels: break;
  }
  return reach - std::int64_t{2} * axis.pixels + output_padding.value_or(0);
}

void check_output_padding(const std::string& who, const HeightWidth& stride, const HeightWidth& output_padding) {
  if (at_least(0, output_padding) && output_padding.height < stride.height &&
      output_padding.width < stride.width) {
    return;
  }
  throw ConfigError(
      who + " of stride " + to_text(stride) + " cannot have an output padding of " + to_text(output_padding),
      "use 0 to stride - 1; more would be pixels that no window reaches");
}

}  // namespace

void visit_extents(OptionVisitor& visit, const char* name, HeightWidth& extents, const char* sentence) {
  std::vector<std::int64_t> numbers{extents.height};
  if (extents.height != extents.width) numbers.push_back(extents.width);
  visit(name, numbers, sentence);
  const auto fits = [](std::int64_t number) { return std::in_range<int>(number); };
  if (numbers.empty() || numbers.size() > 2 || !std::ranges::all_of(numbers, fits)) {
    throw ConfigError(std::string("'") + name + "' is neither one whole number nor two, for height and width");
  }
  extents = {static_cast<int>(numbers.front()), static_cast<int>(numbers.back())};
}

void visit_square(OptionVisitor& visit, const char* name, int& extent, const char* sentence) {
  HeightWidth both = extent;
  visit_extents(visit, name, both, sentence);
  if (both.height != both.width) {
    throw ConfigError(std::string(name) + " = " + to_text(both) + ": both axes must have the same",
                      "give one number for both");
  }
  extent = both.height;
}

Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window) {
  check_window(who, input, filters, window);
  const Shape result{convolved_extent(input[0], vertical(window)), convolved_extent(input[1], horizontal(window)),
                     filters};
  if (result[0] < 1 || result[1] < 1) {
    throw ConfigError(who + " of " + kernel_text(window) + " does not fit into " + input.to_string() +
                          ": the result would be " + result.to_string(),
                      "use ConvPadding::kSame or a smaller kernel");
  }
  return result;
}

ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision) {
  const Shape output{convolved_extent(input[0], vertical(window)), convolved_extent(input[1], horizontal(window)),
                     1};
  return options_between(input, output, window, precision);
}

Shape transposed_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window,
                       const HeightWidth& output_padding) {
  check_window(who, input, filters, window);
  std::optional<int> rows, columns;
  if (output_padding != kUsualPadding) {
    check_output_padding(who, window.stride, output_padding);
    rows = output_padding.height, columns = output_padding.width;
  }
  const Shape result{transposed_extent(input[0], vertical(window), rows),
                     transposed_extent(input[1], horizontal(window), columns), filters};
  if (result[0] < 1 || result[1] < 1) {
    throw ConfigError(
        who + " makes nothing of " + input.to_string() + ": the result would be " + result.to_string(),
        "use less padding or a larger kernel");
  }
  return result;
}

ConvOptions transposed_options(const Shape& input, const Shape& result, const ConvWindow& window,
                               Precision precision) {
  return options_between(result, input, window, precision);
}

}  // namespace headrace
