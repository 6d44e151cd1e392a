// A copy of everything that a model's training changes, as of a point in the streams' work.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

// Memory is allocated once, pinned if the device has its own memory; take() may be called again once the last copy
// is no longer needed.
class ModelSnapshot {
 public:
  // Holds the first replica's variables and optimizer memory, and `sets` sets of totals per replica.
  ModelSnapshot(const ModelState& model, int sets, std::size_t set_bytes);
  ~ModelSnapshot();  // waits for submitted copies
  ModelSnapshot(const ModelSnapshot&) = delete;
  ModelSnapshot& operator=(const ModelSnapshot&) = delete;

  // Submits the copies to the replicas' streams. `save_totals` is called for each replica; it may be empty.
  // `totals`: the sets of all shards of several workers, instead.
  using SaveTotals = std::function<void(int replica, std::byte* into)>;
  void take(const SaveTotals& save_totals, std::vector<std::vector<std::byte>> totals = {});

  // Waits for the copies. Throws DeviceError if a stream failed before them. Any thread. REQUIRES: after take().
  void wait() const;
  // Returns whether no value is a NaN or an infinity. REQUIRES: after wait().
  bool is_finite() const;
  // Returns the copies, valid until the next take().
  std::vector<TensorToWrite> tensors() const;

 private:
  struct Arena {
    TensorView from;
    Buffer copy;
  };
  struct Place {
    std::string name;
    Shape shape;
    std::size_t arena = 0, offset = 0, bytes = 0;
  };
  struct Replica {
    Buffer totals;
    std::unique_ptr<Event> copied;
    std::unique_ptr<std::atomic<bool>> reached;  // the stream got this far without an error
  };

  void add_arena(const TensorView& arena);
  void add_place(const std::string& name, const TensorView& view);

  const ModelState& model_;
  std::vector<Arena> arenas_;
  std::vector<Place> places_;
  std::vector<Replica> local_replicas_;
  std::vector<std::vector<std::byte>> totals_;
  std::size_t sets_, set_bytes_;
  bool with_totals_ = false;
};

}  // namespace headrace
