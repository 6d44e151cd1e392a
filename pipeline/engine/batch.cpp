#include "headrace/pipeline/batch.h"

namespace headrace {

Batch::~Batch() {
  if (lease_ != nullptr) lease_->release(nullptr);
}

const TensorView& Batch::tensor(const std::string& field) const {
  return content_.tensors[find_field(*content_.fields, field)];
}

void Batch::release(Stream& consumer) noexcept {
  if (lease_ != nullptr) lease_->release(&consumer);
  lease_.reset();
}

}  // namespace headrace
