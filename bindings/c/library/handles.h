// The structs behind the opaque handles.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/headrace.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/digest.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/shared_batch.h"
#include "headrace/pipeline/sources.h"

struct hr_devices {
  std::shared_ptr<headrace::DeviceGroup> group;
};

struct hr_source {
  headrace::SourcePtr source;
  std::string format = {}, left_out = {}, reading = {};
};

struct hr_operations {
  std::vector<headrace::Operation> list;
};

struct hr_filter {
  headrace::RecordFilter filter;
};

struct hr_cache {
  std::shared_ptr<headrace::SampleCache> cache;
};

struct hr_tally {
  std::shared_ptr<headrace::BadRecordTally> tally = std::make_shared<headrace::BadRecordTally>();
  mutable std::mutex mutex;
  mutable std::optional<headrace::BadRecord> first;  // set at the first request; by mutex until set
};

struct hr_inspection {
  headrace::Inspection found;
};

struct hr_dataset {
  explicit hr_dataset(headrace::Dataset dataset) : plan(std::move(dataset)) {}

  headrace::Dataset plan;
  mutable std::mutex mutex;
  mutable std::set<std::string> names;  // returned names; by mutex
};

struct hr_loader {
  std::shared_ptr<headrace::DeviceGroup> devices;
  bool streamed;
  headrace::Loader loader;
};

struct hr_batch {
  headrace::SharedBatch batch;
};

struct hr_digest {
  std::shared_ptr<headrace::DeviceGroup> devices;
  headrace::StreamDigest digest;
};

// Handles that live for one call to the program's function.

struct hr_record {
  headrace::RecordWriter& writer;
};

struct hr_random {
  headrace::Philox& numbers;
};

struct hr_sample {
  headrace::UserSample& sample;
  std::size_t inputs, outputs;
  hr_random random{sample.random()};
};

struct hr_example {
  const headrace::ExampleView& view;
};

namespace headrace::c {

// The user data of a program's callback, released when the last function that holds it is gone.
inline std::shared_ptr<void> share(const hr_user& user) {
  if (user.release == nullptr) return {user.data, [](void*) {}};
  return {user.data, user.release};
}

Field field_of(const hr_field& field);
// Returns a field named `name`, which the caller keeps alive.
hr_field describe(const Field& field, const char* name);
// Points to the strings of `bad`.
hr_bad_record bad_record_of(const BadRecord& bad);
// Null stays null.
std::shared_ptr<BadRecordTally> share(const hr_tally* tally);
Fields fields_of(const hr_field* fields, std::size_t count);
// Checks the zero-based index of a `what`, such as "field". Throws ConfigError if there are only `count`.
void check_index(std::size_t index, std::size_t count, const char* what);
// Writes a shape to an array of HR_MAX_RANK entries and its rank to another; either may be null.
void write_shape(const Shape& shape, std::int64_t* extents, std::size_t* rank);

}  // namespace headrace::c
