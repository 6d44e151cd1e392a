// What stands in a device's memory, copied: tests that read it run on any device.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/devices/device.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/batch.h"

namespace headrace::test {

// `count` values from `from` on, in memory of `device`. What writes them must be done.
template <typename T>
std::vector<T> download(Device& device, const void* from, std::size_t count) {
  std::vector<T> values(count);
  const auto stream = device.create_stream();
  stream->copy(values.data(), from, count * sizeof(T));
  stream->synchronize();
  return values;
}

template <typename T>
std::vector<T> download(Device& device, const TensorView& tensor) {
  return download<T>(device, tensor.data, static_cast<std::size_t>(tensor.elements()));
}

// One value at `to`, in memory of `device`. What reads or writes it must be done.
template <typename T>
void upload(Device& device, T* to, T value) {
  const auto stream = device.create_stream();
  stream->copy(to, &value, sizeof value);
  stream->synchronize();
}

// A field of a batch in memory of `device`, once it is there: all rows, those of padding too.
template <typename T>
std::vector<T> download(Device& device, const Batch& batch, const std::string& field) {
  batch.ready().wait();
  return download<T>(device, batch.tensor(field));
}

// Only those of its examples.
template <typename T>
std::vector<T> download_examples(Device& device, const Batch& batch, const std::string& field) {
  std::vector<T> values = download<T>(device, batch, field);
  const std::int64_t row = batch.tensor(field).shape.without_front().elements();
  values.resize(static_cast<std::size_t>(batch.examples() * row));
  return values;
}

}  // namespace headrace::test
