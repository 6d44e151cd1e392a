// What a tf.train.Example says about the fields of a record.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

// A field of the records, and the features that it may be.
struct TfField {
  Field field;                    // encoded images, i64 or f32
  std::vector<std::string> keys;  // the first that an example has
};

// Image and label first, then those of options.feature_keys, which are as `example` has them. ConfigError where it
// lacks one or has one that no field can be, and where the labels are not of the type that is wanted. Throws
// Error(kDataCorrupt) where `example` is none.
std::vector<TfField> tf_fields(const TfRecordOptions& options, std::span<const std::byte> example,
                               const std::string& source);
// The same of image and label alone, where no example can be read.
std::vector<TfField> tf_fields(const TfRecordOptions& options);

// All features of an example, by name, and which fields they are. Throws Error(kDataCorrupt).
std::vector<SourceColumn> tf_columns(std::span<const std::byte> example, const std::vector<TfField>& fields);

// What the numbers of one record take: all fields but the images.
std::size_t number_bytes(const std::vector<TfField>& fields);

// The fields of an example: images lie in the payload, numbers are written to `numbers`, which number_bytes() says
// the size of and which is aligned to 8. Throws Error(kDataCorrupt): the payload is no Example, or lacks a key,
// naming those it has, or has another number of values.
RecordView parse_tf_example(std::span<const std::byte> payload, const std::vector<TfField>& fields,
                            std::span<std::byte> numbers);

}  // namespace headrace
