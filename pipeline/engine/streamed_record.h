// A record of a stream, which its batch's slot keeps: nobody could ask for it again.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "headrace/pipeline/record.h"

namespace headrace {

struct StreamedRecord {
  std::vector<std::byte> bytes;
  RecordView view;           // into `bytes`
  std::exception_ptr error;  // why there is none; else null

  // Throws its error.
  const RecordView& get() const {
    if (error != nullptr) std::rethrow_exception(error);
    return view;
  }
};

}  // namespace headrace
