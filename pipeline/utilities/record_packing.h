// The records of a source as convert_dataset() writes them, made by several threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/operations/machinery/image_recoder.h"
#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// Of one source, which must outlive it. One thread; those that it starts are gone when a call returns.
class RecordPacking {
 public:
  // One record as it is to be written, or why it cannot be.
  struct Packed {
    std::array<std::vector<std::byte>, kMaxFields> bytes;
    std::optional<Failure> failure;
  };
  using Take = std::function<void(std::uint64_t record, const Packed& packed)>;

  RecordPacking(const Source& source, const ConvertOptions& options);
  ~RecordPacking();

  // Gives every record to `take`, in order, on the calling thread: what is given depends on no thread. Throws what
  // `take` throws.
  void run(const Take& take);

 private:
  class Packer;

  void make(std::uint64_t first, std::uint64_t count);

  const Source& source_;
  LabelCheck labels_;
  std::vector<std::unique_ptr<Packer>> packers_;  // one a thread
  std::vector<Packed> records_;
};

}  // namespace headrace
