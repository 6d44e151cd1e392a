#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Intervals per row: more of them enlarge the index, but fewer MCUs are read and discarded.
constexpr std::int64_t kIntervals = 8;

constexpr std::uint32_t kMaxSide = 65535;  // of a JPEG

// An index as bytes begins with it.
struct Head {
  std::uint64_t content;
  std::uint32_t height, width, interval, rows;
  std::uint16_t intervals;
  std::uint8_t components, step_bytes;  // of each step: 2 or 4
  std::uint32_t zero;
};
static_assert(std::has_unique_object_representations_v<Head> && std::endian::native == std::endian::little);

// Numbers that grow within groups of `group`, as steps from the number before.
template <typename Use>
void for_each_step(const std::vector<std::uint32_t>& numbers, std::size_t group, const Use& use) {
  for (std::size_t i = 0; i < numbers.size(); ++i) use(i % group == 0 ? numbers[i] : numbers[i] - numbers[i - 1]);
}

template <typename T>
void append_values(std::span<const T> values, std::vector<std::byte>& to) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Takes so many steps off the front of `bytes`, and replaces the numbers; returns false if there are fewer.
template <typename Step>
bool take_steps(std::span<const std::byte>& bytes, std::uint64_t count, std::size_t group,
                std::vector<std::uint32_t>& numbers) {
  if (count > bytes.size() / sizeof(Step)) return false;
  numbers.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Step step{};
    std::memcpy(&step, bytes.data() + i * sizeof(Step), sizeof(Step));
    numbers[i] = (i % group == 0 ? 0 : numbers[i - 1]) + step;
  }
  bytes = bytes.subspan(numbers.size() * sizeof(Step));
  return true;
}

}  // namespace

std::uint64_t JpegIndex::content_of(std::span<const std::byte> encoded) noexcept { return xxh3(encoded); }

std::span<const std::byte> JpegIndex::row(std::span<const std::byte> encoded, std::int64_t row) const noexcept {
  // The last bits may share a byte with the next row's first, and a stuffed zero may follow.
  const std::size_t begin = rows_[index(row)], end = std::size_t{rows_[index(row + 1)]} + 2;
  return encoded.subspan(begin, std::min(end, encoded.size()) - begin);
}

JpegIndex::Entry JpegIndex::entry(std::int64_t row, std::int64_t interval) const noexcept {
  const std::int64_t at = row * (intervals_ + 1) + interval;
  Entry entry{.bit = bits_[index(at)]};
  std::copy_n(predictors_.begin() + at * components_, components_, entry.predictors.begin());
  return entry;
}

std::uint64_t JpegIndex::bytes() const noexcept {
  return sizeof *this + rows_.capacity() * sizeof rows_[0] + bits_.capacity() * sizeof bits_[0] +
         predictors_.capacity() * sizeof predictors_[0];
}

JpegIndex JpegIndex::extents_of(const JpegFrame& frame) noexcept {
  JpegIndex index;
  index.size_ = frame.size;
  index.interval_ = (frame.mcu_columns + kIntervals - 1) / kIntervals;
  index.intervals_ = (frame.mcu_columns + index.interval_ - 1) / index.interval_;
  index.components_ = frame.components;
  return index;
}

JpegIndex::JpegIndex(const JpegFrame& frame) : JpegIndex(extents_of(frame)) {
  const std::size_t entries = index(frame.mcu_rows * (intervals_ + 1));
  rows_.reserve(index(frame.mcu_rows + 1));
  bits_.reserve(entries);
  predictors_.reserve(entries * index(components_));
}

void JpegIndex::append_to(std::vector<std::byte>& bytes) const {
  const std::size_t in_row = index(intervals_ + 1);
  std::uint32_t longest = 0;
  const auto look = [&](std::uint32_t step) { longest = std::max(longest, step); };
  for_each_step(rows_, rows_.size(), look);
  for_each_step(bits_, in_row, look);
  const Head head{.content = content_,
                  .height = static_cast<std::uint32_t>(size_.height),
                  .width = static_cast<std::uint32_t>(size_.width),
                  .interval = static_cast<std::uint32_t>(interval_),
                  .rows = static_cast<std::uint32_t>(rows_.size()),
                  .intervals = static_cast<std::uint16_t>(intervals_),
                  .components = static_cast<std::uint8_t>(components_),
                  .step_bytes = static_cast<std::uint8_t>(longest >> 16 == 0 ? 2 : 4),
                  .zero = 0};
  append_values(std::span<const Head>(&head, 1), bytes);
  const auto put = [&](std::uint32_t step) {
    append_values(std::as_bytes(std::span(&step, 1)).first(head.step_bytes), bytes);
  };
  for_each_step(rows_, rows_.size(), put);
  for_each_step(bits_, in_row, put);
  append_values(std::span<const std::int16_t>(predictors_), bytes);
}

bool JpegIndex::assign(std::span<const std::byte> bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  content_ = head.content;
  size_ = {.height = head.height, .width = head.width};
  interval_ = head.interval;
  intervals_ = head.intervals;
  components_ = head.components;
  if (head.height == 0 || head.height > kMaxSide || head.width == 0 || head.width > kMaxSide) return false;
  if (head.rows == 0 || components_ == 0 || components_ > kMaxJpegComponents) return false;
  const std::size_t in_row = index(intervals_ + 1);
  const std::uint64_t entries = (head.rows - std::uint64_t{1}) * in_row;
  const auto take = head.step_bytes == 2 ? &take_steps<std::uint16_t> : &take_steps<std::uint32_t>;
  if ((head.step_bytes != 2 && head.step_bytes != 4) || !take(bytes, head.rows, head.rows, rows_) ||
      !take(bytes, entries, in_row, bits_))
    return false;
  if (entries > bytes.size() / sizeof predictors_[0] / head.components) return false;
  predictors_.resize(static_cast<std::size_t>(entries) * head.components);
  if (bytes.size() != predictors_.size() * sizeof predictors_[0]) return false;
  std::memcpy(predictors_.data(), bytes.data(), bytes.size());
  return true;
}

bool JpegIndex::fits(const JpegFrame& frame, std::span<const std::byte> encoded) const noexcept {
  const JpegIndex expected = extents_of(frame);
  const auto same_extents = [](const JpegIndex& a, const JpegIndex& b) {
    return a.size_.height == b.size_.height && a.size_.width == b.size_.width && a.interval_ == b.interval_ &&
           a.intervals_ == b.intervals_ && a.components_ == b.components_;
  };
  return same_extents(*this, expected) && rows_.size() == index(frame.mcu_rows + 1) &&
         std::ranges::is_sorted(rows_) && rows_.back() <= encoded.size();
}

void JpegIndex::begin_row(std::size_t byte) noexcept { rows_.push_back(static_cast<std::uint32_t>(byte)); }

void JpegIndex::add(const Entry& entry) noexcept {
  bits_.push_back(entry.bit);
  predictors_.insert(predictors_.end(), entry.predictors.begin(), entry.predictors.begin() + components_);
}

void JpegIndex::close(std::size_t byte, std::span<const std::byte> encoded) noexcept {
  begin_row(byte);
  content_ = content_of(encoded);
}

}  // namespace headrace
