// Parses the fields of a record from a tf.train.Example.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// A field of the records, and the features it may come from.
struct TfField {
  Field field;                    // encoded images, i64, f32, or texts of varying length
  std::vector<std::string> keys;  // the first that an example has
};

struct TfFields {
  std::vector<TfField> fields;
  std::vector<SourceColumn> columns;  // all features of an example, by name
};

// Returns image and label, then the fields of options.feature_keys, typed as in `example`. Throws ConfigError if
// it lacks one or has one that cannot be a field, or if the labels are not of the wanted type; Error(kDataCorrupt)
// if `example` is not an Example.
TfFields tf_fields(const TfRecordOptions& options, std::span<const std::byte> example, const std::string& source);
// Returns image and label alone, for when no example can be read.
std::vector<TfField> tf_fields(const TfRecordOptions& options);

// Returns whether the field is bytes of the payload, an encoded image or text, rather than numbers parsed from it.
bool lies_in_payload(const Field& field) noexcept;
// Returns the bytes of one record's numbers: all fields that do not lie in the payload.
std::size_t number_bytes(const std::vector<TfField>& fields);

// Returns the fields of an example: images and texts lie in the payload, numbers are written to `numbers`. Throws
// Error(kDataCorrupt) if the payload is not an Example, lacks a key (naming those it has), or has another number
// of values. REQUIRES: `numbers` has number_bytes() bytes and is aligned to 8.
RecordView parse_tf_example(std::span<const std::byte> payload, const std::vector<TfField>& fields,
                            std::span<std::byte> numbers);

}  // namespace headrace
