// pipeline/PARTS.md, which is printed from the fields: every source, stage, operation and loader with its
// options.
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/support/option_rows.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::string page_of_parts() {
  const std::string head = kPartsHead;
  std::string text =
      "# Sources, stages, combinations, operations and loaders\n\n"
      "Printed from the code by `parts_page_test`, which says how. These are the names in a plan's JSON "
      "([PLAN.md](PLAN.md)), C, C++ and Python, whose functions also take one number for two, such as "
      "`degrees=10` for `degrees=(-10, 10)`.\n\n## Sources\n\n" +
      head;
  for (const SourceOriginPtr& one : source_origins()) {
    OptionRows rows(one->name());
    one->visit_arguments(rows);
    text += rows.text();
  }
  text += "\n## Stages\n\n" + head;
  for (const StageCall& call : stage_calls()) {
    for (const ShownOptions& shown : call.options) {
      OptionRows rows(shown.label);
      shown.visit(rows);
      text += rows.text();
    }
  }
  text += "\n## Combinations\n\n" + head + OptionRows("concatenate").text() +
          rows_of<InterleaveOptions>("interleave") + rows_of<MixOptions>("mix") + rows_of<ZipOptions>("zip");
  text += "\n## Operations\n\nThose with `masks` move other fields with the image.\n\n" + head;
  for (const OperationPtr& one : data_operations()) {
    OptionRows rows(one->name());
    one->visit_options(rows);
    text += rows.text();
  }
  text += "\n## Loaders and conversions\n\n" + head + rows_of<LoaderOptions>("loader") +
          rows_of<ConvertOptions>("convert") + rows_of<InspectOptions>("inspect");
  return text;
}

TEST(PartsPage, IsPrintedFromTheFields) { expect_page("pipeline/PARTS.md", page_of_parts()); }

}  // namespace
}  // namespace headrace::test
