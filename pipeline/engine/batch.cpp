#include "headrace/pipeline/batch.h"

namespace headrace {

Batch::Batch(BatchPosition position, std::int64_t examples, const Fields* fields,
             std::span<const TensorView> tensors, std::span<const std::uint64_t> records,
             std::span<const BadRecord> bad, const Event* ready, std::unique_ptr<BatchLease> lease)
    : position_(position),
      examples_(examples),
      fields_(fields),
      tensors_(tensors),
      records_(records),
      bad_(bad),
      ready_(ready),
      lease_(std::move(lease)) {}

Batch::~Batch() {
  if (lease_ != nullptr) lease_->release(nullptr);
}

const TensorView& Batch::tensor(const std::string& field) const { return tensors_[find_field(*fields_, field)]; }

void Batch::release(Stream& consumer) noexcept {
  if (lease_ != nullptr) lease_->release(&consumer);
  lease_.reset();
}

}  // namespace headrace
