// Gathers the fields of one record in scratch memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/pipeline/record.h"

namespace headrace {

// The scratch memory may move while it grows: fields are places in it until all are there.
class RecordParts {
 public:
  explicit RecordParts(std::vector<std::byte>& scratch) : scratch_(scratch) {}

  // Returns uninitialised room for the field's bytes, aligned to 16, valid until the next call.
  std::span<std::byte> room(std::size_t field, std::size_t bytes) {
    places_[field] = {.offset = used_, .bytes = bytes};
    const std::size_t end = used_ + bytes;
    if (scratch_.size() < end) scratch_.resize(end);
    const std::span<std::byte> room = std::span(scratch_).subspan(used_, bytes);
    used_ = aligned(end);
    return room;
  }
  // Sets the first field: bytes that begin the scratch memory already. REQUIRES: called before room().
  void keep_first(std::span<const std::byte> bytes) {
    places_[0] = {.offset = 0, .bytes = bytes.size()};
    used_ = aligned(bytes.size());
  }
  // Sets a field whose bytes the source keeps itself.
  void keep(std::size_t field, std::span<const std::byte> bytes) {
    places_[field] = {.kept = bytes.data(), .bytes = bytes.size()};
  }

  // Returns all fields. REQUIRES: nothing is added after.
  RecordView view() const {
    RecordView view;
    for (std::size_t field = 0; field < places_.size(); ++field) {
      const Place place = places_[field];
      const std::byte* data = place.kept != nullptr ? place.kept : scratch_.data() + place.offset;
      view.fields[field] = {data, place.bytes};
    }
    return view;
  }

 private:
  struct Place {
    const std::byte* kept = nullptr;
    std::size_t offset = 0, bytes = 0;
  };

  static std::size_t aligned(std::size_t size) noexcept {
    constexpr std::size_t kAlignment = 16;
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::vector<std::byte>& scratch_;
  std::size_t used_ = 0;
  PerField<Place> places_;
};

}  // namespace headrace
