#include "headrace/pipeline/engine/resident_samples.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr std::int32_t kNowhere = -1;

}  // namespace

ResidentSamples::ResidentSamples(DeviceGroup& devices, const Fields& fields, const std::vector<DevicePass>& passes,
                                 const BatchLayout& bus, std::uint64_t records, MemoryBudget& budget)
    : bus_(bus), charged_(budget), capacity_(records) {
  std::size_t beside_bytes = 0;
  const auto add = [&](std::vector<Kept>& list, std::size_t field, std::size_t& bytes) {
    list.push_back(
        {.field = field, .row_bytes = bus.row_bytes[field], .offset = bytes, .shape = fields[field].shape});
    bytes += records * bus.row_bytes[field];
  };
  std::size_t device_bytes = 0;
  for (const DevicePass& pass : passes) add(images_, pass.field, device_bytes);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (std::ranges::find(passes, i, &DevicePass::field) == passes.end()) add(beside_, i, beside_bytes);
  }
  charged_.hold(records * sizeof(std::int32_t) + beside_bytes, "what stays on the host of resident samples");
  places_.assign(records, kNowhere);
  table_.resize(beside_bytes);
  for (int r = 0; r < devices.size(); ++r) {
    device_.push_back(devices[r].allocate(device_bytes));
    std::vector<TensorView>& views = views_.emplace_back();
    for (const Kept& kept : images_) {
      const Shape shape = kept.shape.with_front(static_cast<std::int64_t>(capacity_));
      views.push_back(device_.back().view(shape, DType::kU8, kept.offset));
    }
  }
}

bool ResidentSamples::holds(std::span<const std::uint64_t> records) const noexcept {
  return std::ranges::all_of(records, [&](std::uint64_t record) { return places_[record] != kNowhere; });
}

void ResidentSamples::restore(Slot& slot) const {
  for (int r = 0; r < bus_.local_replicas; ++r) {
    const SlotShare& share = slot.shares[static_cast<std::size_t>(r)];
    for (std::int64_t row = 0; row < share.rows; ++row) {
      const auto place =
          static_cast<std::size_t>(places_[slot.records[static_cast<std::size_t>(share.first + row)]]);
      const SampleProgram::Rows rows = slot.rows(r, row);
      for (const Kept& kept : beside_) {
        std::memcpy(rows[kept.field], table_.data() + kept.offset + place * kept.row_bytes, kept.row_bytes);
      }
    }
  }
}

// The new records from `row` on, as many as come one after another; gives them their places.
ResidentSamples::Run ResidentSamples::next_run(const Slot& slot, const SlotShare& share, std::int64_t row) {
  const auto place_at = [&](std::int64_t at) -> std::int32_t& {
    return places_[slot.records[static_cast<std::size_t>(share.first + at)]];
  };
  while (row < share.rows && place_at(row) != kNowhere) ++row;
  Run run{.share = &share, .row = row, .place = next_};
  while (row < share.rows && place_at(row) == kNowhere) {
    place_at(row++) = static_cast<std::int32_t>(next_++);
    ++run.count;
  }
  return run;
}

void ResidentSamples::send(const Run& run, std::span<Stream* const> streams) {
  const auto from = [&](const Kept& kept) {
    return run.share->host.data() + bus_.offset[kept.field] + static_cast<std::size_t>(run.row) * kept.row_bytes;
  };
  for (const Kept& kept : images_) {
    for (std::size_t r = 0; r < device_.size(); ++r) {
      streams[r]->copy(device_[r].data() + kept.offset + run.place * kept.row_bytes, from(kept),
                       run.count * kept.row_bytes);
    }
  }
  for (const Kept& kept : beside_) {
    std::memcpy(table_.data() + kept.offset + run.place * kept.row_bytes, from(kept), run.count * kept.row_bytes);
  }
}

void ResidentSamples::keep(const Slot& slot, std::span<Stream* const> streams) {
  for (const SlotShare& share : slot.shares) {
    for (std::int64_t row = 0; row < share.rows;) {
      const Run run = next_run(slot, share, row);
      if (run.count > 0) send(run, streams);
      row = run.row + static_cast<std::int64_t>(run.count);
    }
  }
}

}  // namespace headrace
