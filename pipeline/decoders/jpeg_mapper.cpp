#include "headrace/pipeline/decoders/jpeg_mapper.h"

#include <algorithm>
#include <limits>

#include "headrace/pipeline/decoders/decode_request.h"
#include "headrace/pipeline/decoders/jpeg_units.h"

namespace headrace {
namespace {

// Of a row: the more, the larger the map, and the fewer units are passed over.
constexpr std::int64_t kStretches = 8;

}  // namespace

std::unique_ptr<const JpegMap> JpegMapper::map(std::span<const std::byte> encoded) {
  if (encoded.size() > std::numeric_limits<std::uint32_t>::max() / 8) return nullptr;
  if (!read_jpeg_frame(encoded, frame_)) return nullptr;
  if (frame_.size.height > kMostPixels / frame_.size.width) return nullptr;
  // Restart markers within a row would have to be found again whenever a part of the row is used.
  if (frame_.restart_interval % frame_.unit_columns != 0) return nullptr;
  auto map = std::make_unique<JpegMap>();
  map->size_ = frame_.size;
  map->stretch_ = (frame_.unit_columns + kStretches - 1) / kStretches;
  map->stretches_ = (frame_.unit_columns + map->stretch_ - 1) / map->stretch_;
  map->components_ = frame_.components;
  // A row takes a bit a block at least: what a header claims is not believed before that is checked.
  if (frame_.unit_rows > static_cast<std::int64_t>(encoded.size()) * 8 / frame_.unit_columns) return nullptr;
  const std::size_t places = static_cast<std::size_t>(frame_.unit_rows * (map->stretches_ + 1));
  map->rows_.reserve(static_cast<std::size_t>(frame_.unit_rows + 1));
  map->bits_.reserve(places);
  map->levels_.reserve(places * static_cast<std::size_t>(map->components_));
  if (!map_rows(encoded, *map)) return nullptr;
  map->content_ = JpegMap::content_of(encoded);
  return map;
}

void JpegMapper::begin_segment(std::span<const std::byte> encoded, std::size_t at) {
  segment_ = at;
  unstuffed_.assign(encoded.subspan(at));
}

bool JpegMapper::map_rows(std::span<const std::byte> encoded, JpegMap& map) {
  begin_segment(encoded, frame_.data);
  restarts_ = 0;
  JpegBits bits(unstuffed_.data(), 0);
  JpegLevels levels{};
  for (std::int64_t row = 0; row < frame_.unit_rows; ++row) {
    if (row > 0 && frame_.restart_interval > 0 && row * frame_.unit_columns % frame_.restart_interval == 0) {
      if (!pass_restart(encoded, bits)) return false;
      bits = JpegBits(unstuffed_.data(), 0);
      levels = {};
    }
    map.rows_.push_back(static_cast<std::uint32_t>(segment_ + unstuffed_.coded_place(bits.at() / 8)));
    if (!map_row(bits, levels, map)) return false;
  }
  map.rows_.push_back(static_cast<std::uint32_t>(segment_ + unstuffed_.coded_place(bits.at() / 8)));
  return is_at_end(encoded, bits);
}

// Behind the last row and the rest of its last byte stands the marker that ends an image, and nothing between. All
// else is for libjpeg to judge.
bool JpegMapper::is_at_end(std::span<const std::byte> encoded, const JpegBits& bits) const {
  if ((bits.at() + 7) / 8 != unstuffed_.size()) return false;
  const std::size_t marker = segment_ + unstuffed_.coded_place(unstuffed_.size());
  return encoded.size() - marker >= 2 && encoded[marker] == std::byte{0xFF} &&
         encoded[marker + 1] == std::byte{0xD9};
}

// From the end of one segment to the beginning of the next.
bool JpegMapper::pass_restart(std::span<const std::byte> encoded, const JpegBits& bits) {
  if ((bits.at() + 7) / 8 != unstuffed_.size()) return false;
  const std::size_t marker = segment_ + unstuffed_.coded_place(unstuffed_.size());
  const auto expected = static_cast<std::byte>(0xD0 + restarts_);
  if (encoded.size() - marker < 2 || encoded[marker] != std::byte{0xFF} || encoded[marker + 1] != expected)
    return false;
  restarts_ = (restarts_ + 1) % 8;
  begin_segment(encoded, marker + 2);
  return true;
}

bool JpegMapper::map_row(JpegBits& bits, JpegLevels& levels, JpegMap& map) {
  const JpegUnits units(frame_);
  const std::uint64_t begin = bits.at() / 8 * 8;
  const auto note = [&] {
    map.bits_.push_back(static_cast<std::uint32_t>(bits.at() - begin));
    map.levels_.insert(map.levels_.end(), levels.begin(), levels.begin() + frame_.components);
  };
  for (std::int64_t left = frame_.unit_columns; left > 0; left -= map.stretch_) {
    note();
    if (!units.skip(bits, unstuffed_.bits(), std::min(left, map.stretch_), levels)) return false;
  }
  note();
  return true;
}

}  // namespace headrace
