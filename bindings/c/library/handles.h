// The structs behind the opaque handles, and what reads and writes the structs and texts of a program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/bindings/c/library/errors.h"
#include "headrace/devices/device_group.h"
#include "headrace/headrace.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/shared_batch.h"
#include "headrace/pipeline/sources.h"

struct hr_devices {
  std::shared_ptr<headrace::DeviceGroup> group;
};

struct hr_tally {
  std::shared_ptr<headrace::BadRecordTally> tally = std::make_shared<headrace::BadRecordTally>();
};

struct hr_parts {
  headrace::PlanParts parts;
};

struct hr_dataset {
  explicit hr_dataset(headrace::Dataset dataset, bool is_source = false)
      : plan(std::move(dataset)), has_stages(!is_source) {}

  headrace::Dataset plan;
  bool has_stages;
  mutable std::mutex mutex;
  mutable std::set<std::string> texts;  // returned names; by mutex
};

struct hr_loader {
  std::shared_ptr<headrace::DeviceGroup> devices;
  headrace::Loader loader;
};

struct hr_batch {
  headrace::SharedBatch batch;
};

// Lives for one call to the program's function.
struct hr_record {
  headrace::RecordWriter& writer;
};

namespace headrace::c {

using Json = nlohmann::ordered_json;

// The user data of a program's callback, released when the last function that holds it is gone.
inline std::shared_ptr<void> share(const hr_user& user) {
  if (user.release == nullptr) return {user.data, [](void*) {}};
  return {user.data, user.release};
}
// Null stays null.
inline std::shared_ptr<BadRecordTally> share(const hr_tally* tally) {
  return tally != nullptr ? tally->tally : nullptr;
}

Field field_of(const hr_field& field);
Fields fields_of(const hr_field* fields, std::size_t count);
// Returns a field named `name`, which the caller keeps alive.
hr_field describe(const Field& field, const char* name);
// Checks the zero-based index of a `what`, such as "field". Throws ConfigError if there are only `count`.
void check_index(std::size_t index, std::size_t count, const char* what);
// Checks the size of a struct `name` whose macro is `macro`. Throws ConfigError if no version had such a size.
void check_size(std::size_t size, const char* name, const char* macro);
// Throws ConfigError if bytes of a struct that this library does not know are set.
void refuse_unknown_members(const void* from, std::size_t known, std::size_t size, const char* name);

// Returns a struct of a program of any version, with defaults for members that it does not know. Throws
// ConfigError if it sets a member that this library does not know.
template <typename Given>
Given read_struct(const Given* from, const Given& defaults, const char* name, const char* macro) {
  static_assert(std::is_trivially_copyable_v<Given>);
  Given known = defaults;
  if (from == nullptr) return known;
  check_size(from->size, name, macro);
  refuse_unknown_members(from, sizeof(Given), from->size, name);
  std::memcpy(&known, from, std::min(from->size, sizeof(Given)));
  known.size = sizeof(Given);
  return known;
}
#define HR_READ(Type, macro, from)                          \
  ::headrace::c::read_struct<Type>(from, Type macro, #Type, \
                                   #macro)  // NOLINT: a braced list cannot be in parentheses

// Writes the members that the program knows, and zero to those that only it knows.
template <typename Result>
void write_struct(Result* to, Result value, const char* name, const char* macro) {
  static_assert(std::is_trivially_copyable_v<Result>);
  const std::size_t size = given(to, name).size;
  check_size(size, name, macro);
  value.size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(Result)));
}

inline std::string text_of(const char* text) { return text != nullptr ? text : ""; }

// Return a copy to be freed with hr_string_free().
char* owned_text(const std::string& text);
char* owned_text(const Json& json);

// Runs the body of a function that returns a text, `make()`, in `*text`, its argument `name`.
template <typename Make>
hr_status give_text(const char* function, char** text, const char* name, const Make& make) noexcept {
  return guarded(function, [&] {
    char*& result = given(text, name);
    result = owned_text(make());
  });
}

}  // namespace headrace::c
