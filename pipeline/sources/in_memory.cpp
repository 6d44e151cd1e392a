#include <utility>

#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/array_source.h"

namespace headrace {

SourcePtr in_memory(std::string name, std::uint64_t records, std::vector<Array> arrays) {
  return std::make_shared<ArraySource>(std::move(name), records, std::move(arrays));
}

}  // namespace headrace
