// Batches, and their tensors for other libraries: DLPack's and Arrow's.
#include <algorithm>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/dlpack.h"

namespace headrace::c {
namespace {

int32_t device_type(const DeviceInfo& info) {
  if (info.kind == DeviceKind::kCpu) return HR_DEVICE_CPU;
  return info.host_memory ? HR_DEVICE_CUDA_HOST : HR_DEVICE_CUDA;
}

hr_batch_info batch_info_of(const Batch& batch) {
  const BatchPosition& position = batch.position();
  const DeviceInfo& device = batch.device().info();
  hr_batch_info info = HR_BATCH_INFO_INIT;
  info.epoch = position.epoch;
  info.step = position.step;
  info.sequence = position.sequence;
  info.global_examples = position.global_examples;
  info.first_row = position.first_row;
  info.examples = batch.examples();
  info.rows = batch.rows();
  info.tensor_count = batch.tensors().size();
  info.bad_count = batch.bad_records().size();
  info.device_type = device_type(device);
  info.device_id = device.kind == DeviceKind::kCpu ? 0 : device.ordinal;
  info.last_of_epoch = position.last_of_epoch;
  info.writable = batch.writable();
  info.repeats = batch.repeats();
  return info;
}

hr_tensor tensor_of(const Batch& batch, std::size_t index) {
  const TensorView& view = batch.tensors()[index];
  hr_tensor tensor = HR_TENSOR_INIT;
  tensor.name = batch.fields()[index].name.c_str();
  tensor.data = view.data;
  tensor.bytes = view.bytes();
  tensor.dtype = static_cast<std::int32_t>(view.dtype);
  tensor.rank = view.shape.rank();
  std::ranges::copy(view.shape.extents(), tensor.shape);
  return tensor;
}

hr_bad_record bad_record_of(const BadRecord& bad) {
  return {.size = sizeof(hr_bad_record),
          .code = static_cast<hr_status>(bad.code) + 1,
          .substituted = bad.substitute.has_value(),
          .substitute = bad.substitute.value_or(0),
          .source = bad.source.c_str(),
          .name = bad.name.c_str(),
          .operation = bad.operation.c_str(),
          .cause = bad.cause.c_str(),
          .record = bad.record,
          .offset = bad.offset,
          .row = bad.row};
}

DlpackOptions dlpack_options_of(const hr_dlpack_options* options) {
  const auto how = HR_READ(hr_dlpack_options, HR_DLPACK_OPTIONS_INIT, options);
  DlpackOptions dlpack{.synchronize = !how.unsynchronized, .padding = how.padding, .read_only = how.read_only};
  if (how.has_stream) dlpack.stream = how.stream;
  return dlpack;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_batch_describe(const hr_batch* batch, hr_batch_info* info) {
  return guarded(__func__, [&] {
    headrace::c::write_struct(info, headrace::c::batch_info_of(*given(batch, "batch").batch), "hr_batch_info",
                              "HR_BATCH_INFO_INIT");
  });
}

hr_status hr_batch_tensor(const hr_batch* batch, const char* field, hr_tensor* tensor) {
  return guarded(__func__, [&] {
    const headrace::Batch& of = *given(batch, "batch").batch;
    const std::size_t index = headrace::find_field(of.fields(), &given(field, "field"));
    headrace::c::write_struct(tensor, headrace::c::tensor_of(of, index), "hr_tensor", "HR_TENSOR_INIT");
  });
}

hr_status hr_batch_tensor_at(const hr_batch* batch, size_t index, hr_tensor* tensor) {
  return guarded(__func__, [&] {
    const headrace::Batch& of = *given(batch, "batch").batch;
    headrace::c::check_index(index, of.tensors().size(), "tensor");
    headrace::c::write_struct(tensor, headrace::c::tensor_of(of, index), "hr_tensor", "HR_TENSOR_INIT");
  });
}

hr_status hr_batch_records(const hr_batch* batch, const uint64_t** records, size_t* count) {
  return guarded(__func__, [&] {
    const auto all = given(batch, "batch").batch->records();
    const uint64_t*& first = given(records, "records");
    given(count, "count") = all.size();
    first = all.data();
  });
}

hr_status hr_batch_bad_record(const hr_batch* batch, size_t index, hr_bad_record* bad) {
  return guarded(__func__, [&] {
    const auto all = given(batch, "batch").batch->bad_records();
    headrace::c::check_index(index, all.size(), "bad record");
    headrace::c::write_struct(bad, headrace::c::bad_record_of(all[index]), "hr_bad_record", "HR_BAD_RECORD_INIT");
  });
}

hr_status hr_batch_wait(const hr_batch* batch) {
  return guarded(__func__, [&] { given(batch, "batch").batch->ready().wait(); });
}

hr_status hr_batch_is_ready(const hr_batch* batch, bool* ready) {
  return guarded(__func__, [&] { given(ready, "ready") = given(batch, "batch").batch->ready().ready(); });
}

hr_status hr_batch_use_in(const hr_batch* batch, uintptr_t stream) {
  return guarded(__func__, [&] { given(batch, "batch").batch.use_in(stream); });
}

void hr_batch_free(hr_batch* batch) { delete batch; }

hr_status hr_batch_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                          struct DLManagedTensorVersioned** tensor) {
  return guarded(__func__, [&] {
    DLManagedTensorVersioned*& result = given(tensor, "tensor");
    result = headrace::to_dlpack(given(batch, "batch").batch, &given(field, "field"),
                                 headrace::c::dlpack_options_of(options));
  });
}

hr_status hr_batch_legacy_dlpack(const hr_batch* batch, const char* field, const hr_dlpack_options* options,
                                 struct DLManagedTensor** tensor) {
  return guarded(__func__, [&] {
    DLManagedTensor*& result = given(tensor, "tensor");
    result = headrace::to_legacy_dlpack(given(batch, "batch").batch, &given(field, "field"),
                                        headrace::c::dlpack_options_of(options));
  });
}

hr_status hr_batch_arrow(const hr_batch* batch, struct ArrowSchema* schema, struct ArrowArray* array) {
  return guarded(__func__, [&] {
    headrace::export_arrow(given(batch, "batch").batch, &given(schema, "schema"), &given(array, "array"));
  });
}
