// Batches in memory that is no slot of a loader: copies, and what Python functions made of a batch.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/bindings/python/batch.h"
#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// The content of an owned batch.
class OwnedContent final : public BatchLease {
 public:
  explicit OwnedContent(const Batch& like)
      : device(like.device()),
        fields(like.fields()),
        ragged(like.ragged().begin(), like.ragged().end()),
        records(like.records().begin(), like.records().end()),
        bad(like.bad_records().begin(), like.bad_records().end()),
        ready(device.create_event()) {}

  void release(Stream* consumer) noexcept override {
    try {
      if (consumer != nullptr) consumer->synchronize();  // its memory goes with it
    } catch (const std::exception&) {                    // the stream has failed: its work is over
    }
  }

  BatchContent content(const BatchPosition& position, std::int64_t examples) {
    return {.position = position,
            .examples = examples,
            .fields = &fields,
            .tensors = tensors,
            .ragged = ragged,
            .records = records,
            .bad = bad,
            .ready = ready.get(),
            .device = &device,
            .writable = true};
  }

  Device& device;
  Fields fields;
  std::vector<RaggedTensor> ragged;
  std::vector<TensorView> tensors;
  std::vector<std::uint64_t> records;
  std::vector<BadRecord> bad;
  std::unique_ptr<Event> ready;  // never recorded: complete
  std::vector<Buffer> buffers;
  std::vector<std::shared_ptr<const void>> owners;
};

// The batch with other fields: buffers of Python, whose first extent is the number of examples.
PythonBatch with_fields(const PythonBatch& like, const std::vector<std::pair<FieldTuple, nb::object>>& given) {
  auto owned = std::make_unique<OwnedContent>(*like.batch);
  if (!owned->device.info().host_memory) {
    throw ConfigError("Python functions of whole batches work in the host's memory, and the batch is on " +
                          owned->device.info().name,
                      "do it in your own loop, on the device");
  }
  owned->fields.clear();
  owned->ragged.clear();
  std::int64_t examples = 0;
  for (const auto& [tuple, array] : given) {
    Field field = to_field(tuple);
    SharedBuffer shared = share_buffer(array);
    // Written to by nobody but the array's owner, who gave it away.
    owned->tensors.push_back({const_cast<std::byte*>(shared.bytes.data()), field.shape, field.dtype});
    owned->owners.push_back(std::move(shared.owner));
    examples = field.shape[0];
    field.shape = field.shape.without_front();
    owned->fields.push_back(std::move(field));
  }
  if (static_cast<std::uint64_t>(examples) != owned->records.size()) owned->records.clear();
  const BatchContent content = owned->content(like.batch->position(), examples);
  // The device is kept by the batch that this one came from.
  auto keeps = std::make_shared<HeldBatch>(like.batch);
  return {.batch = HeldBatch(SharedBatch(Batch(content, std::move(owned)), std::move(keeps))),
          .replica = like.replica};
}

}  // namespace

SharedBatch copy_of(const SharedBatch& batch, std::shared_ptr<const void> devices) {
  auto owned = std::make_unique<OwnedContent>(*batch);
  const std::unique_ptr<Stream> stream = owned->device.create_stream();
  stream->wait(batch->ready());
  for (const TensorView& tensor : batch->tensors()) {
    owned->buffers.push_back(owned->device.allocate(std::max<std::size_t>(tensor.bytes(), 1)));
    owned->tensors.push_back(owned->buffers.back().view(tensor.shape, tensor.dtype));
    stream->copy(owned->tensors.back().data, tensor.data, tensor.bytes());
  }
  stream->synchronize();
  const BatchContent content = owned->content(batch->position(), batch->examples());
  return SharedBatch(Batch(content, std::move(owned)), std::move(devices));
}

void bind_owned_batch(nb::module_& module) { module.def("with_fields", &with_fields, "like"_a, "fields"_a); }

}  // namespace headrace::python
