#include "headrace/pipeline/bad_record.h"

namespace headrace {

std::string describe(const BadRecord& bad) {
  std::string text = bad.name.empty() ? "" : bad.name + ": ";
  if (!bad.operation.empty()) text += bad.operation + ": ";
  return text + bad.cause;
}

}  // namespace headrace
