#include "headrace/pipeline/engine/given_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {

std::optional<Buffer> SpareRows::take(const Device& device) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(spare_, &device, &Spare::device);
  if (found == spare_.end()) return std::nullopt;
  Buffer rows = std::move(found->rows);
  spare_.erase(found);
  return rows;
}

void SpareRows::put(const Device& device, Buffer rows) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (spare_.size() < count_) spare_.push_back({.device = &device, .rows = std::move(rows)});
  } catch (const std::exception&) {  // freed instead of kept
  }
}

void SpareRows::close() noexcept {
  const std::lock_guard lock(mutex_);
  count_ = 0;
  spare_.clear();
}

GivenRows::GivenRows(std::shared_ptr<SpareRows> spare, SlotShare& share, std::int64_t rows,
                     std::span<const std::uint64_t> records, std::span<const BadRecord> bad,
                     std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      spare_(std::move(spare)),
      device_(share.where),
      tensors_(share.tensors),
      records_(records.begin(), records.end()),
      bad_(bad.begin(), bad.end()),
      ready_(device_->create_event()) {
  const std::size_t bytes = share.host.size();
  std::optional<Buffer> other = spare_->take(*device_);
  const bool is_new = !other;
  if (is_new) {
    other = device_->allocate(bytes);
    std::memset(other->data(), 0, bytes);
  }
  rows_ = std::exchange(share.host, std::move(*other));
  // The previous holder of reused rows may have written to all of them.
  share.used_rows = is_new ? 0 : rows;
  for (TensorView& tensor : share.tensors) {
    tensor.data = share.host.data() + (static_cast<std::byte*>(tensor.data) - rows_.data());
  }
}

GivenRows::~GivenRows() { spare_->put(*device_, std::move(rows_)); }

void GivenRows::release(Stream* consumer) noexcept {
  try {
    if (consumer != nullptr) consumer->synchronize();  // the rows go with this
  } catch (const std::exception&) {                    // the stream has failed: its work is over
  }
}

BatchContent GivenRows::shown(BatchContent content) const noexcept {
  content.tensors = tensors_;
  content.records = records_;
  content.bad = bad_;
  content.ready = ready_.get();
  return content;
}

}  // namespace headrace
