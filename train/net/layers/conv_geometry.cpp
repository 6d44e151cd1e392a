#include "headrace/train/net/layers/conv_geometry.h"

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::array<const char*, 3> kPaddings{"same", "even", "valid"};  // in the order of ConvPadding

std::int64_t convolved_extent(std::int64_t input, const ConvWindow& window) {
  const std::int64_t covered = window.padding == ConvPadding::kValid ? input - window.kernel : input - 1;
  return covered < 0 ? 0 : covered / window.stride + 1;
}

// Returns the pixels of padding over both sides.
int same_padding(std::int64_t input, const ConvWindow& window) {
  const std::int64_t reach = (convolved_extent(input, window) - 1) * window.stride + window.kernel;
  return static_cast<int>(std::max<std::int64_t>(0, reach - input));
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
  if (window.padding == ConvPadding::kEven && window.kernel % 2 == 0) {
    throw ConfigError(who + " of kernel " + std::to_string(window.kernel) + " cannot be padded evenly",
                      "use ConvPadding::kSame or an odd kernel");
  }
}

Shape convolved_shape(const std::string& who, const Shape& input, int filters, const ConvWindow& window) {
  check_window(who, input, filters, window);
  const Shape result{convolved_extent(input[0], window), convolved_extent(input[1], window), filters};
  if (result[0] < 1 || result[1] < 1) {
    throw ConfigError(who + " of kernel " + std::to_string(window.kernel) + " does not fit into " +
                          input.to_string() + ": the result would be " + result.to_string(),
                      "use ConvPadding::kSame or a smaller kernel");
  }
  return result;
}

ConvOptions conv_options(const Shape& input, const ConvWindow& window, Precision precision) {
  ConvOptions options{.stride = window.stride, .precision = precision};
  if (window.padding == ConvPadding::kSame) {
    const int height = same_padding(input[0], window), width = same_padding(input[1], window);
    options.pad_top = height / 2;
    options.pad_bottom = height - height / 2;
    options.pad_left = width / 2;
    options.pad_right = width - width / 2;
  }
  if (window.padding == ConvPadding::kEven) {
    options.pad_top = options.pad_left = options.pad_bottom = options.pad_right = (window.kernel - 1) / 2;
  }
  return options;
}

std::string to_text(ConvPadding padding) { return kPaddings.at(static_cast<std::size_t>(padding)); }

ConvPadding padding_of(const LayerRecord& record, const std::string& kind) {
  const std::string name = record.attributes.text("padding");
  const auto found = std::ranges::find(kPaddings, name);
  if (found == kPaddings.end()) {
    throw ConfigError(label(record.name, kind) + " has the unknown padding '" + name + "'");
  }
  return static_cast<ConvPadding>(found - kPaddings.begin());
}

}  // namespace headrace
