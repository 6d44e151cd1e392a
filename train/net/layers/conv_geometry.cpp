#include "headrace/train/net/layers/conv_geometry.h"

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::array<const char*, 4> kPaddings{"same", "even", "valid", "pixels"};  // in the order of ConvPadding
constexpr int kMaxSpan = 1 << 16;                                                   // pixels; more is a mistake

// Returns the pixels of padding on each side; for kSame, where they depend on the extents, 0.
int fixed_padding(const ConvWindow& window) {
  if (window.padding == ConvPadding::kEven) return (window.span() - 1) / 2;
  return window.padding == ConvPadding::kPixels ? window.pixels : 0;
}

std::int64_t convolved_extent(std::int64_t input, const ConvWindow& window) {
  const bool keeps = window.padding == ConvPadding::kSame || window.padding == ConvPadding::kEven;
  const std::int64_t room = keeps ? input - 1 : input + 2 * fixed_padding(window) - window.span();
  return room < 0 ? 0 : room / window.stride + 1;
}

// Returns the pixels of padding over both sides with which a convolution of `input` gives `output`.
int same_padding(std::int64_t input, std::int64_t output, const ConvWindow& window) {
  const std::int64_t reach = (output - 1) * window.stride + window.span();
  return static_cast<int>(std::max<std::int64_t>(0, reach - input));
}

ConvOptions options_between(const Shape& input, const Shape& output, const ConvWindow& window,
                            Precision precision) {
  // A single tap has no neighbours.
  ConvOptions options{
      .stride = window.stride, .dilation = window.kernel == 1 ? 1 : window.dilation, .precision = precision};
  options.pad_top = options.pad_left = options.pad_bottom = options.pad_right = fixed_padding(window);
  if (window.padding == ConvPadding::kSame) {
    const int height = same_padding(input[0], output[0], window),
              width = same_padding(input[1], output[1], window);
    options.pad_top = height / 2;
    options.pad_bottom = height - height / 2;
    options.pad_left = width / 2;
    options.pad_right = width - width / 2;
  }
  return options;
}

void check_padding(const std::string& who, const ConvWindow& window) {
  if (window.padding == ConvPadding::kEven && window.kernel % 2 == 0) {
    throw ConfigError(who + " of kernel " + std::to_string(window.kernel) + " cannot be padded evenly",
                      "use ConvPadding::kSame or an odd kernel");
  }
  if (window.padding != ConvPadding::kPixels && window.pixels != 0) {
    throw ConfigError(who + " has " + std::to_string(window.pixels) + " pixels of padding, but its padding is '" +
                          to_text(window.padding) + "'",
                      "use ConvPadding::kPixels, or leave the pixels out");
  }
  if (window.pixels < 0 || window.pixels > kMaxSpan) {
    throw ConfigError(who + " cannot be padded by " + std::to_string(window.pixels) + " pixels",
                      "use 0 to " + std::to_string(kMaxSpan));
  }
}

std::int64_t transposed_extent(std::int64_t input, const ConvWindow& window, std::optional<int> output_padding) {
  const int span = window.span();
  const std::int64_t reach = (input - 1) * window.stride + span;
  switch (window.padding) {
    case ConvPadding::kSame:
      return output_padding ? reach - span / 2 * 2 + *output_padding : input * window.stride;
    case ConvPadding::kEven: return output_padding ? reach - (span - 1) + *output_padding : input * window.stride;
    case ConvPadding::kValid: return reach + output_padding.value_or(std::max(0, window.stride - span));
    case ConvPadding::kPixels: break;
  }
  return reach - 2 * window.pixels + output_padding.value_or(0);
}

}  // namespace

void check_window(const std::string& who, const Shape& input, int filters, const ConvWindow& window) {
  if (input.rank() != 3) {
    throw ConfigError(who + " needs an input of shape (height, width, channels), got " + input.to_string());
  }
  if (filters < 1 || window.kernel < 1 || window.stride < 1) {
    throw ConfigError(who + " needs filters, kernel and stride of at least 1, got " + std::to_string(filters) +
                      ", " + std::to_string(window.kernel) + " and " + std::to_string(window.stride));
  }
  if (window.dilation < 1) {
    throw ConfigError(who + " needs a dilation of at least 1, got " + std::to_string(window.dilation),
                      "1 keeps the kernel's taps together");
  }
  if (std::int64_t{window.kernel - 1} * window.dilation >= kMaxSpan) {
    throw ConfigError(who + " of kernel " + std::to_string(window.kernel) + " and dilation " +
                          std::to_string(window.dilation) + " spans more than " + std::to_string(kMaxSpan) +
                          " pixels",
                      "use a smaller kernel or dilation");
  }
  check_padding(who, window);
}

Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window) {
  check_window(who, input, filters, window);
  const Shape result{convolved_extent(input[0], window), convolved_extent(input[1], window), filters};
  if (result[0] < 1 || result[1] < 1) {
    const std::string dilated = window.dilation == 1 ? "" : " and dilation " + std::to_string(window.dilation);
    throw ConfigError(who + " of kernel " + std::to_string(window.kernel) + dilated + " does not fit into " +
                          input.to_string() + ": the result would be " + result.to_string(),
                      "use ConvPadding::kSame or a smaller kernel");
  }
  return result;
}

ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision) {
  const Shape output{convolved_extent(input[0], window), convolved_extent(input[1], window), 1};
  return options_between(input, output, window, precision);
}

Shape transposed_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window,
                       std::optional<int> output_padding) {
  check_window(who, input, filters, window);
  if (output_padding && (*output_padding < 0 || *output_padding >= window.stride)) {
    throw ConfigError(who + " of stride " + std::to_string(window.stride) + " cannot have an output padding of " +
                          std::to_string(*output_padding),
                      "use 0 to stride - 1; more would be pixels that no window reaches");
  }
  const Shape result{transposed_extent(input[0], window, output_padding),
                     transposed_extent(input[1], window, output_padding), filters};
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

std::string to_text(ConvPadding padding) { return kPaddings.at(static_cast<std::size_t>(padding)); }

void add_window(LayerAttributes& attributes, const ConvWindow& window) {
  if (window.dilation != 1) attributes.add("dilation", window.dilation);
  if (window.padding == ConvPadding::kPixels) attributes.add("pixels", window.pixels);
}

ConvWindow window_from(const LayerRecord& record, const std::string& kind) {
  const LayerAttributes& given = record.attributes;
  const std::string word = given.text("padding");
  const auto found = std::ranges::find(kPaddings, word);
  if (found == kPaddings.end()) {
    throw ConfigError(label(record.name, kind) + " has the unknown padding '" + word + "'");
  }
  return {.kernel = given.whole("kernel"),
          .stride = given.whole("stride"),
          .dilation = given.has("dilation") ? given.whole("dilation") : 1,
          .padding = static_cast<ConvPadding>(found - kPaddings.begin()),
          .pixels = given.has("pixels") ? given.whole("pixels") : 0};
}

}  // namespace headrace
