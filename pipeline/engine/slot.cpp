#include "headrace/pipeline/engine/slot.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace {
namespace {

std::size_t host_bytes(const BatchLayout& layout, const DeviceConversion* conversion) {
  return layout.buffer_bytes + (conversion != nullptr ? conversion->drawn_bytes() : 0);
}

}  // namespace

Slot::Slot(DeviceGroup& devices, const Fields& fields, const BatchLayout& layout,
           const DeviceConversion* conversion, std::span<const BatchShape> shapes,
           std::span<const RaggedTensor> ragged)
    : layout_(&layout),
      conversion_(conversion),
      shapes_(shapes),
      ragged_(ragged),
      fields_(fields.size()),
      guest_rows_(static_cast<std::size_t>(layout.guest_rows) * layout.guest_bytes) {
  const std::size_t bytes = host_bytes(layout, conversion);
  for (int r = 0; r < layout.local_replicas; ++r) {
    Device& device = devices[r];
    const bool in_place = device.info().host_memory;
    SlotShare share;
    share.where = &device;
    share.host = in_place ? device.allocate(bytes) : device.allocate_pinned(bytes);
    if (!in_place) share.device = device.allocate(bytes - layout.sent_from);
    if (conversion != nullptr && conversion->result_bytes() > 0) {
      share.results = device.allocate(conversion->result_bytes());
    }
    std::memset(share.host.data(), 0, bytes);
    share.ready = device.create_event();
    share.fence = device.create_event();
    const Buffer& batch = in_place ? share.host : share.device;
    for (std::size_t i = 0; i < fields.size() && shapes.empty(); ++i) {
      const TensorView made = conversion != nullptr ? conversion->result(share.results, i) : TensorView{};
      share.tensors.push_back(made.defined() ? made
                                             : batch.view(fields[i].shape.with_front(layout.local_rows),
                                                          fields[i].dtype, layout.offset[i] - layout.sent_from));
    }
    shares.push_back(std::move(share));
  }
}

Slot::Bytes Slot::bytes(DeviceGroup& devices, const BatchLayout& layout, const DeviceConversion* conversion) {
  Bytes bytes{.pageable = static_cast<std::uint64_t>(layout.guest_rows) * layout.guest_bytes};
  for (int r = 0; r < layout.local_replicas; ++r) {
    const bool in_place = devices[r].info().host_memory;
    (in_place ? bytes.pageable : bytes.pinned) += host_bytes(layout, conversion);
    if (!in_place) bytes.on_device = host_bytes(layout, conversion) - layout.sent_from;
    if (!in_place && conversion != nullptr) bytes.on_device += conversion->result_bytes();
  }
  return bytes;
}

void Slot::begin(const BatchPosition& at) {
  take_in(at);
  for (SlotShare& share : shares) {
    clear_rest(share);
    if (conversion_ != nullptr) conversion_->forget_jpegs(share.host.data());
  }
}

void Slot::begin_failed(const BatchPosition& at, Failure why) {
  take_in(at);
  fail(std::move(why));
}

// Not the records of a stream: an abandoned call of user code may still read them, and keeps the engine.
void Slot::free_memory() noexcept {
  shares.clear();
  pageable = {};
  pinned = {};
}

// In place: the consumers' streams have passed the batch. Copied: pinned memory is free once its copy is done, and
// the copy stream waits for the consumer's.
bool Slot::is_passed() const {
  return std::ranges::all_of(shares, [](const SlotShare& share) {
    if (share.device) return share.ready->ready();
    return !share.fenced || share.fence->ready();
  });
}

void Slot::reshape(const BatchShape& shape) {
  if (layout_ == &shape.layout) return;
  layout_ = &shape.layout;
  for (SlotShare& share : shares) {
    const Buffer& batch = share.where->info().host_memory ? share.host : share.device;
    share.tensors.clear();
    for (std::size_t i = 0; i < fields_; ++i) {
      share.tensors.push_back(batch.view(shape.fields[i].shape.with_front(layout_->local_rows),
                                         shape.fields[i].dtype, layout_->offset[i]));
    }
    for (const RaggedTensor& ragged : ragged_) {  // without entries until they are known
      share.tensors[ragged.values].shape = shape.fields[ragged.values].shape.without_front().with_front(0);
    }
    share.used_rows = layout_->local_rows;  // rows of another shape were there
  }
}

void Slot::take_in(const BatchPosition& at) {
  position = at;
  if (!shapes_.empty()) reshape(shapes_[at.bucket]);
  mixing_part.clear();
  position.first_row = layout_->examples_before(at.global_examples);
  records.resize(static_cast<std::size_t>(layout_->first_of(at.global_examples, layout_->local_replicas)));
  passes.resize(records.size());
  failure.reset();
  bad.clear();
  warned.clear();
  oriented.store(0, std::memory_order_relaxed);
  mixing = 0;
  for (int r = 0; r < layout_->local_replicas; ++r) {
    SlotShare& share = shares[static_cast<std::size_t>(r)];
    share.first = layout_->first_of(at.global_examples, r);
    share.rows = layout_->first_of(at.global_examples, r + 1) - share.first;
    share.released = false;
  }
}

void Slot::add_guests() {
  records.resize(records.size() + mixing_part.guests().size());
  passes.resize(records.size());
}

void Slot::clear_rest(SlotShare& share) {
  for (std::size_t i = 0; i < fields_ && share.rows < share.used_rows; ++i) {
    const std::size_t bytes = layout_->row_bytes[i];
    std::memset(share.host.data() + layout_->offset[i] + static_cast<std::size_t>(share.rows) * bytes, 0,
                static_cast<std::size_t>(share.used_rows - share.rows) * bytes);
  }
  share.used_rows = share.rows;
}

void Slot::draw_windows(std::uint64_t seed) {
  if (conversion_ == nullptr) return;
  for (SlotShare& share : shares) {
    const auto first = static_cast<std::size_t>(share.first), rows = static_cast<std::size_t>(share.rows);
    conversion_->draw({.seed = seed,
                       .records = std::span(records).subspan(first, rows),
                       .passes = std::span(passes).subspan(first, rows)},
                      share.host.data());
  }
}

void Slot::pick(std::span<const std::int32_t> places) {
  for (SlotShare& share : shares) {
    const auto first = static_cast<std::size_t>(share.first), rows = static_cast<std::size_t>(share.rows);
    conversion_->pick(places, std::span(records).subspan(first, rows), share.host.data());
  }
}

void Slot::close_gaps() {
  const std::int64_t before = examples();
  auto gap = bad.begin();
  std::int64_t kept = 0;  // examples, over all replicas
  for (int r = 0; r < layout_->local_replicas; ++r) {
    SlotShare& share = shares[static_cast<std::size_t>(r)];
    const std::int64_t first = std::exchange(share.first, kept), end = first + share.rows;
    for (std::int64_t example = first; example < end; ++example) {
      if (gap != bad.end() && gap->row == example) {
        ++gap;
        continue;
      }
      if (const std::int64_t old_row = example - first, row = kept - share.first; row != old_row) {
        const SampleProgram::Rows from = rows(r, old_row), to = rows(r, row);
        for (std::size_t i = 0; i < fields_; ++i) std::memcpy(to[i], from[i], layout_->row_bytes[i]);
        if (conversion_ != nullptr) conversion_->move_jpeg(share.host.data(), old_row, row);
      }
      records[static_cast<std::size_t>(kept)] = records[static_cast<std::size_t>(example)];
      passes[static_cast<std::size_t>(kept)] = passes[static_cast<std::size_t>(example)];
      ++kept;
    }
    share.rows = kept - share.first;
    clear_rest(share);
  }
  position.global_examples -= before - kept;
  records.resize(static_cast<std::size_t>(kept));
  passes.resize(records.size());
}

void Slot::compact() {
  for (SlotShare& share : shares) {
    for (const RaggedTensor& ragged : ragged_) compact(share, ragged);
  }
}

void Slot::compact(SlotShare& share, const RaggedTensor& ragged) const {
  TensorView& values = share.tensors[ragged.values];
  TensorView& offsets = share.tensors[ragged.offsets];
  const Shape entry = values.shape.without_front();
  const std::size_t entry_bytes = static_cast<std::size_t>(entry.elements()) * size_of(values.dtype);
  const std::size_t row_bytes = layout_->row_bytes[ragged.values];
  std::byte* const rows = share.host.data() + layout_->offset[ragged.values];
  auto* const lengths = reinterpret_cast<std::int64_t*>(share.host.data() + layout_->offset[ragged.offsets]);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < share.rows; ++row) {
    const std::int64_t length = std::exchange(lengths[row], total);
    std::memmove(rows + static_cast<std::size_t>(total) * entry_bytes,
                 rows + static_cast<std::size_t>(row) * row_bytes, static_cast<std::size_t>(length) * entry_bytes);
    total += length;
  }
  std::fill(lengths + share.rows, lengths + layout_->local_rows + 1, total);
  values.shape = entry.with_front(total);
  offsets.shape = Shape{layout_->local_rows + 1};
}

void Slot::replay(const BatchPosition& at) {
  const std::int64_t examples = position.global_examples, repeats = position.repeats;
  const std::int64_t first_row = position.first_row;
  const std::uint32_t bucket = position.bucket;
  position = at;
  position.bucket = bucket;
  position.global_examples = examples;
  position.repeats = repeats;
  position.first_row = first_row;
  bad.clear();  // they were counted once
  warned.clear();
  oriented.store(0, std::memory_order_relaxed);
  for (SlotShare& share : shares) {
    share.released = false;
  }
}

SampleProgram::Rows Slot::rows(int replica, std::int64_t local_row) const noexcept {
  SampleProgram::Rows rows;
  std::byte* base = shares[static_cast<std::size_t>(replica)].host.data();
  for (std::size_t i = 0; i < fields_; ++i) {
    rows[i] = base + layout_->offset[i] + static_cast<std::size_t>(local_row) * layout_->row_bytes[i];
  }
  return rows;
}

JpegDestination Slot::jpeg_of(std::int64_t example) const noexcept {
  if (conversion_ == nullptr || example >= examples()) return {};
  const SlotShare& share = shares[replica_of(example)];
  return conversion_->jpeg_of(share.host.data(), example - share.first);
}

std::size_t Slot::replica_of(std::int64_t example) const noexcept {
  std::size_t replica = 0;
  while (example >= shares[replica].first + shares[replica].rows) ++replica;
  return replica;
}

SampleProgram::Rows Slot::rows_of(std::int64_t example) const noexcept {
  if (example >= examples()) return guest_row(example - examples());
  const std::size_t replica = replica_of(example);
  return rows(static_cast<int>(replica), example - shares[replica].first);
}

SampleProgram::Rows Slot::guest_row(std::int64_t guest) const noexcept {
  SampleProgram::Rows rows;
  std::byte* row = guest_rows_.data() + static_cast<std::size_t>(guest) * layout_->guest_bytes;
  for (std::size_t i = 0; i < fields_; ++i) {
    rows[i] = row;
    row += BatchLayout::aligned(layout_->row_bytes[i]);
  }
  return rows;
}

void Slot::fail(Failure cause) {
  const std::lock_guard lock(failure_mutex_);
  if (!failure || cause.what.row < failure->what.row) failure = std::move(cause);
}

void Slot::set_aside(BadRecord record) {
  if (JpegWindow* const window = jpeg_of(record.row).window) window->coded = 0;
  const std::lock_guard lock(failure_mutex_);
  bad.push_back(std::move(record));
}

void Slot::warn(BadRecord record) {
  const std::lock_guard lock(failure_mutex_);
  warned.push_back(std::move(record));
}

}  // namespace headrace
