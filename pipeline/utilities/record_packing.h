// Makes records of a data set as a record file holds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// The records of a source as convert_dataset() writes them, made by several threads. Of one source, which must
// outlive it. One thread; those that it starts are gone when a call returns.
class RecordPacking {
 public:
  // One record in its final form, or why it cannot be written.
  struct Packed {
    std::array<std::vector<std::byte>, kMaxFields> bytes;
    std::vector<std::byte> jpeg_index;  // of the first field that is a JPEG; empty: none
    std::optional<Failure> failure;
  };
  using Take = std::function<void(std::uint64_t record, const Packed& packed)>;

  RecordPacking(const Source& source, const ConvertOptions& options);
  ~RecordPacking();

  // Gives these records to `take`, in order, on the calling thread: what is given depends on no thread. Throws
  // what `take` throws.
  void run(std::uint64_t first, std::uint64_t count, const Take& take);

 private:
  class Packer;

  void announce(std::uint64_t end);
  void make(std::uint64_t first, std::uint64_t count);

  const Source& source_;
  LabelCheck labels_;
  std::vector<std::unique_ptr<Packer>> packers_;  // one per thread
  std::vector<Packed> records_;
  std::uint64_t announced_ = 0;  // records before it were
};

}  // namespace headrace
