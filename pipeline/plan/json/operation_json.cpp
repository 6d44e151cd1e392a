#include "headrace/pipeline/plan/json/operation_json.h"

#include <fmt/format.h>

#include <vector>

#include "headrace/devices/base/text.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/json/option_reader.h"
#include "headrace/pipeline/plan/json/option_writer.h"

namespace headrace::plan_json {

nlohmann::ordered_json write_operation(const Operation& operation, const PlanParts& parts,
                                       const std::string& path) {
  const OperationDefinition& definition = operation.definition();
  const char* name = definition.name();
  if (name == nullptr) return write_named(operation, parts, path);
  const auto shown = [&](OptionVisitor& visit) { definition.visit_options(visit); };
  return {{name, write_options(fmt::format("{}.{}", path, name), shown)}};
}

Operation read_operation(const JsonPlace& place, const PlanOptions& plan) {
  if (place.has(kNamed)) return named_operation(place, plan.parts);
  const std::string name = place.only_name("an operation");
  const OperationPtr usual = find_operation(name);
  if (usual == nullptr) {
    std::vector<std::string> known{kNamed};
    for (const OperationPtr& one : data_operations()) known.emplace_back(one->name());
    place.refuse(fmt::format("there is no operation {}{}", in_quotes(name), did_you_mean(name, known)),
                 "write " + one_of(known));
  }
  const JsonPlace object = place.member(name);
  want_options(object, [&](OptionVisitor& visit) { usual->visit_options(visit); });
  OptionReader reader(object, plan);
  return Operation(usual->visit_options(reader));
}

}  // namespace headrace::plan_json
