#include "headrace/pipeline/operations/machinery/operation_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {
namespace {

template <typename... Options>
std::vector<OperationPtr> define_each(OperationList<Options...> /*list*/) {
  return {define(Options{})...};
}

}  // namespace

std::span<const OperationPtr> data_operations() {
  static const std::vector<OperationPtr> operations = define_each(DataOperations());
  return operations;
}

OperationPtr find_operation(std::string_view name) {
  const auto found = std::ranges::find_if(data_operations(), [&](const auto& one) { return one->name() == name; });
  return found == data_operations().end() ? nullptr : *found;
}

std::vector<OperationKind> operation_kinds() {
  std::vector<OperationKind> kinds;
  for (const OperationPtr& one : data_operations()) kinds.push_back({one->name(), one->doc(), one->required()});
  return kinds;
}

Operations operation(std::string_view name, OptionVisitor& options) {
  const OperationPtr found = find_operation(name);
  if (found == nullptr) throw ConfigError("there is no operation '" + std::string(name) + "'");
  return Operation(found->visit_options(options));
}

}  // namespace headrace
