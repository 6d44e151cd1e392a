// A copy of all that a model's training changes, as of a point in the streams' work.
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

// Memory is allocated once, pinned where the device has memory of its own; take() may be called again once the
// last copy is no longer needed.
class ModelSnapshot {
 public:
  // Of the first replica's variables and what its optimizer keeps, and of so many sets of totals a replica.
  ModelSnapshot(const ModelState& model, int sets, std::size_t set_bytes);
  ~ModelSnapshot();  // waits for copies that were submitted
  ModelSnapshot(const ModelSnapshot&) = delete;
  ModelSnapshot& operator=(const ModelSnapshot&) = delete;

  // Submits the copies to the replicas' streams; `save_totals` is called for each replica, or empty.
  using SaveTotals = std::function<void(int replica, std::byte* into)>;
  void take(const SaveTotals& save_totals);

  // Any thread, after take(). Waits for the copies; DeviceError where a stream failed before it came to them.
  void wait() const;
  // After wait(): no variable holds a NaN or an infinity.
  bool is_finite() const;
  // The copies, valid until the next take().
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
    std::unique_ptr<std::atomic<bool>> reached;  // the stream came so far without an error
  };

  void add_arena(const TensorView& arena);
  void add_place(const std::string& name, const TensorView& view);

  const ModelState& model_;
  std::vector<Arena> arenas_;
  std::vector<Place> places_;
  std::vector<Replica> local_replicas_;
  std::size_t sets_, set_bytes_;
  bool with_totals_ = false;
};

}  // namespace headrace
