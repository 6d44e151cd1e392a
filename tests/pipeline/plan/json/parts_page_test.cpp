// pipeline/PARTS.md, which is printed from the fields: every source, stage, operation and loader with its
// options.
#include <string>

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/plan/json/stage_options.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/support/option_rows.h"

namespace headrace {
namespace {

using test::OptionRows;
using test::rows_of;

std::string page_of_parts() {
  using namespace plan_json;
  const std::string head = test::kPartsHead;
  std::string text =
      "# Sources, stages, combinations, operations and loaders\n\n"
      "Printed from the code by `parts_page_test`, which says how. These are the names in a plan's JSON "
      "([PLAN.md](PLAN.md)), C and C++; Python's functions take some of them in another form, such as "
      "`degrees=(-10, 10)` for `min_degrees` and `max_degrees`.\n\n## Sources\n\n" +
      head;
  for (const SourceOriginPtr& one : source_origins()) {
    OptionRows rows(one->name());
    one->visit_arguments(rows);
    text += rows.text();
  }
  text += "\n## Stages\n\n" + head;
  text += rows_of<DecodeOptions>("decode") + rows_of<ShuffleOptions>("shuffle") +
          rows_of<ShuffleWindowOptions>("shuffle_window") + rows_of<Passes>("repeat") +
          rows_of<RecordCount>("take") + rows_of<RecordCount>("skip") + rows_of<ChosenRecords>("select") +
          rows_of<ShardOf>("shard") + rows_of<ShardOf>("without_shard") +
          rows_of<WorkerShard>("shard_for_worker") + rows_of<LabelOptions>("filter") +
          rows_of<EnumerateOptions>("enumerate") + rows_of<WindowOptions>("window") +
          rows_of<NoOptions>("unbatch") + rows_of<plan_json::MemoryBudget>("cache: memory") +
          rows_of<CacheFolder>("cache: disk") + rows_of<BatchOptions>("batch") +
          rows_of<PaddedBatchOptions>("padded_batch") + rows_of<PadField>("padded_batch: pad") +
          rows_of<RaggedBatchOptions>("ragged_batch") + rows_of<RaggedField>("ragged_batch: fields") +
          rows_of<BucketOptions>("bucket_by_length") + rows_of<BatchesAhead>("prefetch");
  text += "\n## Combinations\n\n" + head + rows_of<NoOptions>("concatenate") +
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

TEST(PartsPage, IsPrintedFromTheFields) { test::expect_page("pipeline/PARTS.md", page_of_parts()); }

}  // namespace
}  // namespace headrace
