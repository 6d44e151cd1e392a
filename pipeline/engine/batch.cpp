#include "headrace/pipeline/batch.h"

#include <algorithm>
#include <mutex>

#include "headrace/pipeline/shared_batch.h"

namespace headrace {

Batch::~Batch() {
  if (lease_ != nullptr) lease_->release(nullptr);
}

const TensorView& Batch::tensor(const std::string& field) const {
  return content_.tensors[find_field(*content_.fields, field)];
}

std::int64_t Batch::rows() const noexcept {
  if (!content_.ragged.empty()) return content_.tensors[content_.ragged.front().offsets].shape[0] - 1;
  return content_.tensors.empty() ? 0 : content_.tensors.front().shape[0];
}

std::int64_t Batch::repeats() const noexcept {
  const BatchPosition& at = content_.position;
  return std::clamp<std::int64_t>(at.first_row + content_.examples - at.global_examples + at.repeats, 0,
                                  content_.examples);
}

std::int64_t Batch::entries(std::size_t field) const noexcept {
  for (const RaggedTensor& ragged : content_.ragged) {
    if (ragged.values == field) return content_.tensors[field].shape[0];
    if (ragged.offsets == field) return content_.examples + 1;
  }
  return content_.examples;
}

void Batch::release(Stream& consumer) noexcept {
  if (lease_ != nullptr) lease_->release(&consumer);
  lease_.reset();
}

class SharedBatch::Held {
 public:
  Held(Batch batch, std::shared_ptr<const void> keeps) : keeps_(std::move(keeps)), batch_(std::move(batch)) {}
  ~Held() {
    try {
      if (!streams_.empty()) release();
    } catch (const std::exception&) {
      // The device is lost, and with it the work that the slot would wait for.
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Batch& batch() const noexcept { return batch_; }

  void use_in(std::uintptr_t stream) {
    Device& device = batch_.device();
    if (device.info().host_memory) return batch_.ready().wait();
    device.borrow_stream(stream)->wait(batch_.ready());
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
  }

 private:
  void release() {
    Device& device = batch_.device();
    const std::unique_ptr<Stream> first = device.borrow_stream(streams_.front());
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      const std::unique_ptr<Event> here = device.create_event();
      device.borrow_stream(streams_[i])->record(*here);
      first->wait(*here);
    }
    batch_.release(*first);
  }

  std::shared_ptr<const void> keeps_;  // goes last
  Batch batch_;
  std::mutex mutex_;
  std::vector<std::uintptr_t> streams_;  // that use it; by mutex_
};

SharedBatch::SharedBatch(Batch batch, std::shared_ptr<const void> keeps)
    : held_(std::make_shared<Held>(std::move(batch), std::move(keeps))) {}

const Batch& SharedBatch::operator*() const noexcept { return held_->batch(); }

void SharedBatch::use_in(std::uintptr_t stream) const { held_->use_in(stream); }

}  // namespace headrace
