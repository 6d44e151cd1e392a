#include "headrace/pipeline/decoders/jpeg_scan/jpeg_frame.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace headrace {
namespace {

enum Marker : unsigned {
  kBaseline = 0xC0,
  kExtended = 0xC1,
  kHuffman = 0xC4,
  kScan = 0xDA,
  kQuantization = 0xDB,
  kRestartInterval = 0xDD,
  kApp0 = 0xE0,
  kAdobe = 0xEE,
  kApp15 = 0xEF,
  kComment = 0xFE,
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Reads one marker segment after the other and refuses anything not known for certain.
class FrameReader {
 public:
  FrameReader(std::span<const std::byte> encoded, JpegFrame& frame) : encoded_(encoded), frame_(frame) {}

  bool read() {
    if (encoded_.size() < 4 || byte(0) != 0xFF || byte(1) != 0xD8) return false;
    for (std::size_t at = 2; at + 4 <= encoded_.size();) {
      const unsigned marker = byte(at + 1);
      const std::size_t length = word(at + 2);
      if (byte(at) != 0xFF || marker == 0xFF || length < 2 || length > encoded_.size() - at - 2) return false;
      const std::size_t end = at + 2 + length;
      if (!take(marker, at + 4, end)) return false;
      if (marker == kScan) return true;
      at = end;
    }
    return false;
  }

 private:
  struct Component {
    unsigned id = 0;
    int horizontal = 0, vertical = 0;
    unsigned quantization = 0;  // table
  };

  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(encoded_[at]); }
  std::size_t word(std::size_t at) const { return std::size_t{byte(at)} << 8 | byte(at + 1); }

  bool begins_with(std::size_t at, std::string_view name) const {
    return std::memcmp(encoded_.data() + at, name.data(), name.size()) == 0;
  }

  // Takes the bytes [at, end) of a segment.
  bool take(unsigned marker, std::size_t at, std::size_t end) {
    const std::size_t bytes = end - at;
    switch (marker) {
      case kBaseline:
      case kExtended: return take_frame(at, bytes);
      case kHuffman: return take_huffman(at, end);
      case kScan: frame_.data = end; return take_scan(at, bytes);
      case kRestartInterval:
        if (bytes != 2) return false;
        frame_.restart_interval = static_cast<std::int64_t>(word(at));
        return true;
      case kQuantization: return take_quantization(at, end);
      case kApp0: has_jfif_ = has_jfif_ || (bytes >= 14 && begins_with(at, {"JFIF\0", 5})); break;
      case kAdobe:
        if (bytes >= 12 && begins_with(at, "Adobe")) adobe_transform_ = static_cast<int>(byte(at + 11));
        break;
      default: break;
    }
    return (marker >= kApp0 && marker <= kApp15) || marker == kComment;  // ignored
  }

  bool take_frame(std::size_t at, std::size_t bytes) {
    if (components_ != 0 || bytes < 6 || byte(at) != 8) return false;
    frame_.size = {.height = static_cast<std::int64_t>(word(at + 1)),
                   .width = static_cast<std::int64_t>(word(at + 3))};
    components_ = static_cast<int>(byte(at + 5));
    if (frame_.size.height == 0 || frame_.size.width == 0) return false;
    if (components_ < 1 || components_ > kMaxJpegComponents) return false;
    if (bytes != 6 + 3 * static_cast<std::size_t>(components_)) return false;
    for (int i = 0; i < components_; ++i) {
      const std::size_t entry = at + 6 + 3 * static_cast<std::size_t>(i);
      const Component component{.id = byte(entry),
                                .horizontal = static_cast<int>(byte(entry + 1) >> 4),
                                .vertical = static_cast<int>(byte(entry + 1) & 15),
                                .quantization = byte(entry + 2)};
      if (component.horizontal < 1 || component.horizontal > 4) return false;
      if (component.vertical < 1 || component.vertical > 4 || component.quantization > 3) return false;
      component_[static_cast<std::size_t>(i)] = component;
    }
    return true;
  }

  bool take_quantization(std::size_t at, std::size_t end) {
    while (at < end) {
      const unsigned target = byte(at) & 15, wide = byte(at) >> 4;
      const std::size_t bytes = 1 + (wide != 0 ? 128 : 64);
      if (target > 3 || wide > 1 || end - at < bytes) return false;
      for (std::size_t i = 0; i < 64; ++i) {
        quantizers_[target][kRowMajor[i]] =
            static_cast<std::uint16_t>(wide != 0 ? word(at + 1 + 2 * i) : byte(at + 1 + i));
      }
      quantization_[target] = true;
      at += bytes;
    }
    return true;
  }

  bool take_huffman(std::size_t at, std::size_t end) {
    while (at < end) {
      if (end - at < 1 + HuffmanCode::kMaxLength) return false;
      const unsigned target = byte(at) & 15, is_ac = byte(at) >> 4;
      if (target > 3 || is_ac > 1) return false;
      std::array<std::uint8_t, HuffmanCode::kMaxLength> counts{};
      std::size_t size = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = static_cast<std::uint8_t>(byte(at + 1 + i));
        size += counts[i];
      }
      at += 1 + counts.size();
      if (size == 0 || size > 256 || size > end - at) return false;
      const auto* symbols = reinterpret_cast<const std::uint8_t*>(encoded_.data() + at);
      // libjpeg refuses a DC code with a larger symbol, used or not.
      if (is_ac == 0 && std::any_of(symbols, symbols + size, [](unsigned s) { return s > 15; })) return false;
      HuffmanCode& code = is_ac != 0 ? frame_.ac[target] : frame_.dc[target];
      if (!code.assign(counts, {symbols, size})) return false;
      at += size;
    }
    return true;
  }

  bool take_scan(std::size_t at, std::size_t bytes) {
    if (components_ == 0 || bytes != 4 + 2 * static_cast<std::size_t>(components_)) return false;
    if (byte(at) != static_cast<unsigned>(components_)) return false;
    const std::size_t rest = at + 1 + 2 * static_cast<std::size_t>(components_);
    if (byte(rest) != 0 || byte(rest + 1) != 63 || byte(rest + 2) != 0) return false;
    std::array<Component, kMaxJpegComponents> order;
    const std::array<Component, kMaxJpegComponents> in_frame = component_;
    for (std::size_t i = 0; i < static_cast<std::size_t>(components_); ++i) {
      const unsigned tables = byte(at + 2 + 2 * i);
      if (!find(byte(at + 1 + 2 * i), order[i]) || tables >> 4 > 3 || (tables & 15) > 3) return false;
      if (!quantization_[order[i].quantization]) return false;
      frame_.dc_of[i] = static_cast<std::uint8_t>(tables >> 4);
      frame_.ac_of[i] = static_cast<std::uint8_t>(tables & 15);
      if (frame_.dc[frame_.dc_of[i]].empty() || frame_.ac[frame_.ac_of[i]].empty()) return false;
    }
    frame_.is_ycc = is_ycc(in_frame, order);
    return lay_out(std::span(order).first(static_cast<std::size_t>(components_)));
  }

  // By libjpeg's rule; files for which it looks at more, or warns, are not certain.
  bool is_ycc(const std::array<Component, kMaxJpegComponents>& in_frame,
              const std::array<Component, kMaxJpegComponents>& order) const {
    bool numbered = components_ == 3;
    for (std::size_t i = 0; i < 3; ++i) {
      if (components_ != 3 || in_frame[i].id != order[i].id) return false;
      numbered = numbered && order[i].id == i + 1;
    }
    return has_jfif_ || adobe_transform_ == 1 || (adobe_transform_ < 0 && numbered);
  }

  // Finds the component with this id; each is found once.
  bool find(unsigned id, Component& found) {
    for (Component& component : component_) {
      if (component.horizontal == 0 || component.id != id) continue;
      found = component;
      component.horizontal = 0;
      return true;
    }
    return false;
  }

  bool lay_out(std::span<Component> order) {
    if (order.size() == 1) order[0].horizontal = order[0].vertical = 1;  // alone it is not interleaved
    int wide = 1, high = 1;
    for (const Component& component : order) {
      wide = std::max(wide, component.horizontal);
      high = std::max(high, component.vertical);
    }
    frame_.components = components_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int blocks = order[i].horizontal * order[i].vertical;
      if (frame_.blocks + blocks > JpegFrame::kMaxBlocks) return false;
      std::fill_n(frame_.component_of.begin() + frame_.blocks, blocks, static_cast<std::uint8_t>(i));
      frame_.across[i] = static_cast<std::uint8_t>(order[i].horizontal);
      frame_.down[i] = static_cast<std::uint8_t>(order[i].vertical);
      frame_.quantizers[i] = quantizers_[order[i].quantization];
      frame_.blocks += blocks;
    }
    frame_.mcu_height = 8 * high;
    frame_.mcu_width = 8 * wide;
    frame_.mcu_rows = ceil_div(frame_.size.height, frame_.mcu_height);
    frame_.mcu_columns = ceil_div(frame_.size.width, frame_.mcu_width);
    return true;
  }

  std::span<const std::byte> encoded_;
  JpegFrame& frame_;
  std::array<Component, kMaxJpegComponents> component_;
  std::array<bool, 4> quantization_{};  // defined
  std::array<std::array<std::uint16_t, 64>, 4> quantizers_{};
  bool has_jfif_ = false;
  int adobe_transform_ = -1;  // of Adobe's segment; negative: there is none
  int components_ = 0;
};

}  // namespace

void JpegFrame::clear() noexcept {
  restart_interval = 0;
  blocks = 0;
  for (HuffmanCode& code : dc) code.clear();
  for (HuffmanCode& code : ac) code.clear();
}

bool read_jpeg_frame(std::span<const std::byte> encoded, JpegFrame& frame) {
  frame.clear();
  return FrameReader(encoded, frame).read();
}

}  // namespace headrace
