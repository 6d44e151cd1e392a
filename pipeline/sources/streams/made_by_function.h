// Helpers shared by sources that call a custom function.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// Throws ConfigError if a source `kind`(name) cannot be made.
inline void check_made_by_function(const std::string& kind, const std::string& name, const Fields& fields,
                                   bool has_function) {
  if (!has_function) throw ConfigError(kind + "(" + name + ") has no function", "set function");
  if (fields.empty() || fields.size() > kMaxFields) {
    throw ConfigError(kind + "(" + name + ") has " + std::to_string(fields.size()) + " fields",
                      "a record has 1 to " + std::to_string(kMaxFields));
  }
}

// Returns the result of `call`; any exception becomes a DataError that says where.
template <typename Call>
auto with_user_code_errors(const std::string& kind, const DataLocation& at, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw DataError(error.code(), kind + ": " + error.message(), at, error.hint());
  } catch (const std::bad_alloc&) {
    throw DataError(ErrorCode::kOutOfMemory, kind + ": out of memory", at);  // not the record's fault
  } catch (const std::exception& error) {
    throw DataError(ErrorCode::kInvalidArgument, kind + ": " + error.what(), at);
  }
}

}  // namespace headrace
