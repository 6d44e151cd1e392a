#include "headrace/train/records/model_snapshot.h"

#include <exception>
#include <functional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/records/training_state.h"
#include "headrace/train/strategy.h"

namespace headrace {

ModelSnapshot::ModelSnapshot(const ModelState& model, int sets, std::size_t set_bytes)
    : model_(model), sets_(static_cast<std::size_t>(sets)), set_bytes_(set_bytes) {
  add_arena(model.variables.parameters(0));
  add_arena(model.variables.state(0));
  if (!model.optimizer.empty()) {
    const OptimizerMemory& memory = model.optimizer.front();
    const auto add = [this](const Buffer& arena) {
      if (arena) add_arena(arena.view({static_cast<std::int64_t>(arena.size())}, DType::kU8));
    };
    for (const Buffer& moment : memory.moments) add(moment);
    add(memory.slow);
    add(memory.average);
  }
  for (const Variable& variable : model.layout.variables()) {
    add_place(variable.name, model.variables.view(variable, 0));
  }
  for (const NamedView& kept : optimizer_views(model, 0)) add_place(kept.name, kept.view);
  const std::size_t totals_bytes = sets_ * set_bytes_;
  for (int r = 0; r < model.strategy->local_replicas(); ++r) {
    Device& device = model.strategy->device(r);
    local_replicas_.push_back({.totals = totals_bytes > 0 ? device.allocate_pinned(totals_bytes) : Buffer{},
                               .copied = device.create_event(),
                               .reached = std::make_unique<std::atomic<bool>>(false)});
  }
}

ModelSnapshot::~ModelSnapshot() {
  for (const Replica& replica : local_replicas_) {
    try {
      replica.copied->wait();
    } catch (const std::exception&) {
      // The device is lost: no copy is in progress.
    }
  }
}

void ModelSnapshot::add_arena(const TensorView& arena) {
  if (!arena.defined() || arena.bytes() == 0) return;
  arenas_.push_back({.from = arena, .copy = model_.strategy->device(0).allocate_pinned(arena.bytes())});
}

void ModelSnapshot::add_place(const std::string& name, const TensorView& view) {
  const std::less_equal<const std::byte*> not_after;
  const auto* at = view.as<const std::byte>();
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    const auto* begin = arenas_[i].from.as<const std::byte>();
    if (!not_after(begin, at) || !not_after(at + view.bytes(), begin + arenas_[i].from.bytes())) continue;
    places_.push_back({.name = name,
                       .shape = view.shape,
                       .arena = i,
                       .offset = static_cast<std::size_t>(at - begin),
                       .bytes = view.bytes()});
    return;
  }
  HEADRACE_CHECK(view.bytes() == 0, "a variable lies in an arena");
}

void ModelSnapshot::take(const SaveTotals& save_totals, std::vector<std::vector<std::byte>> totals) {
  totals_ = std::move(totals);
  with_totals_ = static_cast<bool>(save_totals);
  for (int r = 0; r < model_.strategy->local_replicas(); ++r) {
    Stream& stream = model_.strategy->stream(r);
    const Replica& replica = local_replicas_[static_cast<std::size_t>(r)];
    replica.reached->store(false);
    if (r == 0) {
      for (const Arena& arena : arenas_) stream.copy(arena.copy.data(), arena.from.data, arena.from.bytes());
    }
    if (save_totals) save_totals(r, replica.totals.data());
    const volatile std::uint32_t* failed = model_.strategy->collective().failure_word(r);
    stream.call([reached = replica.reached.get(), failed] { reached->store(failed == nullptr || *failed == 0); });
    stream.record(*replica.copied);
  }
}

void ModelSnapshot::wait() const {
  for (std::size_t r = 0; r < local_replicas_.size(); ++r) {
    local_replicas_[r].copied->wait();
    if (*local_replicas_[r].reached) continue;
    throw DeviceError(ErrorCode::kDevice, "no checkpoint could be taken: a step before it failed",
                      model_.strategy->device(static_cast<int>(r)).info().name);
  }
}

bool ModelSnapshot::is_finite() const {
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t found = 0;
  for (const Arena& arena : arenas_) {
    const auto* bits = reinterpret_cast<const std::uint32_t*>(arena.copy.data());
    const std::size_t count = arena.copy.size() / sizeof(float);
    for (std::size_t i = 0; i < count; ++i) found |= (bits[i] & kExponent) == kExponent ? 1U : 0U;
  }
  return found == 0;
}

std::vector<TensorToWrite> ModelSnapshot::tensors() const {
  std::vector<TensorToWrite> tensors;
  for (const Place& place : places_) {
    const std::span whole(arenas_[place.arena].copy.data(), arenas_[place.arena].copy.size());
    tensors.push_back(
        {.name = place.name, .shape = place.shape, .bytes = whole.subspan(place.offset, place.bytes)});
  }
  const auto add_totals = [&](std::size_t shard, const std::byte* set) {
    tensors.push_back({.name = totals_name(shard),
                       .dtype = DType::kU8,
                       .shape = {static_cast<std::int64_t>(set_bytes_)},
                       .bytes = {set, set_bytes_}});
  };
  for (std::size_t i = 0; i < local_replicas_.size() * sets_ && with_totals_; ++i) {
    add_totals(i, local_replicas_[i / sets_].totals.data() + i % sets_ * set_bytes_);
  }
  for (std::size_t i = 0; i < totals_.size(); ++i) add_totals(i, totals_[i].data());
  return tensors;
}

}  // namespace headrace
