#include "headrace/pipeline/engine/transfer.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {

Transfer::Transfer(const RunPlan& run, DeviceGroup& devices, MemoryBudget& budget) : run_(run) {
  const auto& passes = run.split.passes;
  if (DeviceConversion::is_needed(run)) conversion_.emplace(devices, run);
  if (run.residency.resident) {
    resident_.emplace(devices, run.host.fields, passes, run.layout, run.residency.records, budget);
  }
}

void Transfer::open_streams(DeviceGroup& devices, Trace* trace) {
  for (int r = 0; r < devices.size(); ++r) {
    const bool copied = !devices[r].info().host_memory;
    const auto known =
        std::ranges::find_if(streams_, [&](const auto& one) { return &one->device() == &devices[r]; });
    const auto place = static_cast<std::size_t>(known - streams_.begin());
    if (copied && known == streams_.end()) {
      TraceRing* const ring = trace != nullptr ? &trace->ring(fmt::format("copy stream {}", r)) : nullptr;
      clocks_.push_back(std::make_unique<CopyClock>(ring));
      streams_.push_back(devices[r].create_stream());
    }
    stream_of_.push_back(copied ? streams_[place].get() : nullptr);
    clock_of_.push_back(copied ? clocks_[place].get() : nullptr);
  }
}

void Transfer::send(Slot& slot) {
  if (slot.failure) return;
  try {
    submit(slot);
  } catch (const std::exception& error) {
    slot.fail(Failure::of_batch(error));
  }
}

void Transfer::submit(Slot& slot) {
  const std::uint64_t sequence = slot.position.sequence;
  for (std::size_t r = 0; r < stream_of_.size(); ++r) {
    if (stream_of_[r] != nullptr) wait_for_consumer(slot.shares[r], *stream_of_[r]);
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (clocks_[i]->stamps(sequence)) clocks_[i]->begin(*streams_[i]);
  }
  if (resident_) {
    resident_->keep(slot, stream_of_);
    resident_records_.store(resident_->records(), std::memory_order_relaxed);
    slot.pick(resident_->places());
  }
  for (std::size_t r = 0; r < stream_of_.size(); ++r) {
    if (stream_of_[r] != nullptr) send_share(slot, r);
  }
}

// Called when the share is sent, not earlier, so that copies of earlier batches do not wait for its consumer.
void Transfer::wait_for_consumer(const SlotShare& share, Stream& stream) {
  if (share.fenced) stream.wait(*share.fence);
}

void Transfer::send_share(const Slot& slot, std::size_t replica) {
  const SlotShare& share = slot.shares[replica];
  const std::uint64_t sequence = slot.position.sequence;
  Stream& stream = *stream_of_[replica];
  if (run_.plan.ragged.empty()) {
    std::size_t bytes = run_.shapes.empty() ? share.device.size() : slot.layout().buffer_bytes;
    if (conversion_) bytes -= conversion_->unused_bytes(share.host.data());
    stream.copy(share.device.data(), share.host.data() + run_.layout.sent_from, bytes);
  } else {
    send_tensors(slot, share, stream);
  }
  if (conversion_) {
    const std::uint64_t decoded =
        conversion_->submit(static_cast<int>(replica), stream, share.host.data(), share.device, share.results,
                            resident_ ? resident_->images(replica) : std::span<const TensorView>());
    decoded_.fetch_add(decoded, std::memory_order_relaxed);
  }
  stream.record(*share.ready);
  CopyClock& clock = *clock_of_[replica];
  if (clock.stamps(sequence)) clock.end(stream, sequence, static_cast<std::uint64_t>(share.rows));
}

// Copies each tensor at its actual size: of ragged values, that of their entries.
void Transfer::send_tensors(const Slot& slot, const SlotShare& share, Stream& stream) {
  for (std::size_t i = 0; i < share.tensors.size(); ++i) {
    const TensorView& tensor = share.tensors[i];
    if (tensor.bytes() == 0) continue;
    stream.copy(tensor.data, share.host.data() + slot.layout().offset[i], tensor.bytes());
  }
}

void Transfer::free_memory() noexcept {
  conversion_.reset();
  resident_.reset();
}

}  // namespace headrace
