#include <utility>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/array_source.h"

namespace headrace {

SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays) {
  return std::make_shared<ArraySource>(std::move(name), records, std::move(arrays));
}

SourcePtr borrowed_arrays(std::string name, std::uint64_t records, std::vector<BorrowedArray> arrays,
                          std::vector<std::string> classes) {
  return std::make_shared<ArraySource>(std::move(name), records, std::move(arrays), std::move(classes));
}

}  // namespace headrace
