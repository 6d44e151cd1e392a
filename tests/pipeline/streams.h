// What the tests of running plans share: small sources and the digests of their streams.
#pragma once

#include "headrace/pipeline/digest.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/test_devices.h"

namespace headrace::test {

// Records that are their own number: field "value", i64, scalar.
inline SourcePtr numbers(std::uint64_t count) {
  std::vector<std::byte> bytes(count * sizeof(std::int64_t));
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * sizeof i, &i, sizeof i);
  return in_memory(
      "numbers", count,
      {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {}}, .bytes = std::move(bytes)}});
}

// u8 images of noise with a label each.
inline SourcePtr noise_images(std::uint64_t count, std::int64_t height, std::int64_t width,
                              std::int64_t channels = 3) {
  const auto pixels = static_cast<std::size_t>(height * width * channels);
  std::vector<std::byte> images(count * pixels);
  std::vector<std::byte> labels(count * sizeof(std::int64_t));
  for (std::uint64_t i = 0; i < count; ++i) {
    Philox random({.seed = 99, .record = i});
    for (std::size_t p = 0; p < pixels; ++p)
      images[i * pixels + p] = static_cast<std::byte>(random.next_u32() >> 24);
    const auto label = static_cast<std::int64_t>(i % 10);
    std::memcpy(labels.data() + i * sizeof label, &label, sizeof label);
  }
  return in_memory(
      "noise", count,
      {Array{.field = {.name = "image", .dtype = DType::kU8, .shape = {height, width, channels}},
             .bytes = std::move(images)},
       Array{.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = std::move(labels)}});
}

inline DeviceGroup cpu_replicas(int count) { return devices_of_kind("cpu", count); }

// The loader's choice of `what`; empty where there is none to make.
inline std::string value_of(const Loader& loader, const std::string& what) {
  for (const Choice& choice : loader.choices()) {
    if (choice.what == what) return choice.value;
  }
  return {};
}

// The digests of all batches from the loader's position to its end.
inline std::vector<BatchDigest> digests_of(Loader& loader, DeviceGroup& devices) {
  StreamDigest digest(devices);
  std::vector<BatchDigest> all;
  while (auto next = digest.next(loader)) all.push_back(*next);
  return all;
}

// On the test devices.
inline std::vector<BatchDigest> digests_of(const Dataset& dataset, int replicas, const LoaderOptions& options) {
  DeviceGroup devices = test_devices(replicas);
  Loader loader(dataset, devices, options);
  return digests_of(loader, devices);
}

// What every device's are compared with: those of one CPU replica.
inline std::vector<BatchDigest> cpu_digests_of(const Dataset& dataset, const LoaderOptions& options) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, options);
  return digests_of(loader, devices);
}

}  // namespace headrace::test
