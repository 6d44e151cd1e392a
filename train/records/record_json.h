// The JSON of a record's texts; that of the options that a model was compiled with.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace::record_json {

// Reads the JSON of a record's texts. Private to this folder.

using Json = nlohmann::ordered_json;

// Returns read(json) of a text. Throws DataError if the file has no such text or it is not JSON, or if `read`
// throws ConfigError or nlohmann's exceptions.
template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read);

// Parses a text. Throws ConfigError if it is nested deeper than any that this library writes.
Json parse(std::string_view text);

// Throws DataError. `hint`: empty for the default one.
[[noreturn]] void refuse_text(const TensorFile& file, const std::string& name, const std::string& why,
                              const std::string& hint = {});

template <typename Read>
auto read_text(const TensorFile& file, const std::string& name, const Read& read) {
  const std::string& text = file.text(name);
  try {
    return read(parse(text));
  } catch (const Json::exception& error) {
    refuse_text(file, name, error.what());
  } catch (const ConfigError& error) {
    refuse_text(file, name, error.message(), error.hint());
  }
}

}  // namespace headrace::record_json

// Converts the options that a model was compiled with to and from JSON.

namespace headrace {

record_json::Json to_record_json(const CompileOptions& options);
// Throws ConfigError for invalid options, and for a loss, metric or update rule that is neither this library's nor
// in `own`: the message says what to pass.
CompileOptions compile_options_from(const record_json::Json& json, const CustomParts& own);

}  // namespace headrace
