#include "headrace/pipeline/dlpack.h"

#include <array>
#include <memory>

#include "headrace/pipeline/dlpack_structs.h"

namespace headrace {
namespace {

DLDataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::kU8: return {kDLUInt, bits, 1};
    case DType::kI32:
    case DType::kI64: return {kDLInt, bits, 1};
    case DType::kBF16: return {kDLBfloat, bits, 1};
    case DType::kF16:
    case DType::kF32: break;
  }
  return {kDLFloat, bits, 1};
}

// A GPU that reads the host's memory in place is given batches in pinned memory.
DLDevice dlpack_device(const DeviceInfo& info) {
  if (info.kind == DeviceKind::kCpu) return {kDLCPU, 0};
  return {info.host_memory ? kDLCUDAHost : kDLCUDA, info.ordinal};
}

// The context of a managed tensor.
template <typename Managed>
struct Exported {
  explicit Exported(SharedBatch shared) : batch(std::move(shared)) {}

  SharedBatch batch;
  std::array<std::int64_t, Shape::kMaxRank> shape{}, strides{};
  Managed managed{};
};

template <typename Managed>
void delete_exported(Managed* managed) {
  if (managed != nullptr) delete static_cast<Exported<Managed>*>(managed->manager_ctx);
}

template <typename Managed>
void describe_tensor(Exported<Managed>& exported, std::size_t field, bool padding) {
  const TensorView& tensor = exported.batch->tensors()[field];
  DLTensor& described = exported.managed.dl_tensor;
  const int rank = tensor.shape.rank();
  std::int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    exported.shape[at] = tensor.shape[axis];
    exported.strides[at] = stride;
    stride *= tensor.shape[axis];
  }
  if (!padding) exported.shape[0] = exported.batch->entries(field);
  described.data = tensor.data;
  described.device = dlpack_device(exported.batch->device().info());
  described.ndim = rank;
  described.dtype = dlpack_type(tensor.dtype);
  described.shape = exported.shape.data();
  described.strides = exported.strides.data();
}

template <typename Managed>
std::unique_ptr<Exported<Managed>> exported_tensor(const SharedBatch& batch, const std::string& field,
                                                   const DlpackOptions& options) {
  const std::size_t index = find_field(batch->fields(), field);
  auto exported = std::make_unique<Exported<Managed>>(batch);
  describe_tensor(*exported, index, options.padding);
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported<Managed>;
  if (options.stream) {
    batch.use_in(*options.stream);
  } else if (options.synchronize) {
    batch->ready().wait();
  }
  return exported;
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const SharedBatch& batch, const std::string& field,
                                    const DlpackOptions& options) {
  auto exported = exported_tensor<DLManagedTensorVersioned>(batch, field, options);
  exported->managed.version = {kDlpackMajor, kDlpackMinor};
  if (options.read_only || !batch->writable()) exported->managed.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  return &exported.release()->managed;
}

DLManagedTensor* to_legacy_dlpack(const SharedBatch& batch, const std::string& field,
                                  const DlpackOptions& options) {
  return &exported_tensor<DLManagedTensor>(batch, field, options).release()->managed;
}

}  // namespace headrace
