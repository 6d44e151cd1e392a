// pipeline/PARTS.md, which is printed from the fields: every source, stage and operation with its options.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/option_text.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/operation_table.h"
#include "headrace/pipeline/plan/json/stage_options.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/tests/support/source_file.h"

namespace headrace {
namespace {

// A row of the table for each option. Every option has a sentence.
class OptionRows final : public OptionVisitor {
 public:
  explicit OptionRows(std::string part) : part_(std::move(part)) {}
  std::string text() const { return text_.empty() ? fmt::format("| `{}` | | | |\n", part_) : text_; }

 protected:
  void visit(const char* name, OptionPlace place) override {
    std::visit(
        [&](auto* value) { add(name, option_text([&](OptionVisitor& one) { one("", *value); }).substr(1), {}); },
        place);
  }
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override {
    std::string others;
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (i != number) others += fmt::format("{}`{}`", others.empty() ? " Or " : ", ", choices[i]);
    add(name, choices[number], others + (others.empty() ? "" : "."));
  }
  void visit_list(const char* name, const List& /*list*/) override { add(name, "[]", {}); }

 private:
  void add(const char* name, const std::string& usual, const std::string& others) {
    const std::string explanation = sentence();
    EXPECT_TRUE(explanation.ends_with('.')) << part_ << "." << name << " has no sentence that explains it";
    text_ += fmt::format("| {} | `{}` | {} | {}{} |\n", text_.empty() ? "`" + part_ + "`" : "", name,
                         usual.empty() ? "" : "`" + usual + "`", explanation, others);
  }

  std::string part_, text_;
};

template <typename Options>
std::string rows_of(const char* part, Options options = {}) {
  OptionRows rows(part);
  show(options, rows);
  return rows.text();
}

std::string page_of_parts() {
  using namespace plan_json;
  const std::string head = "| part | option | default | |\n| --- | --- | --- | --- |\n";
  std::string text =
      "# Sources, stages, combinations and operations\n\n"
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
  return text;
}

TEST(PartsPage, IsPrintedFromTheFields) {
  const std::string page = page_of_parts();
  const std::string path = test::source_file("pipeline/PARTS.md");
  if (std::getenv("HEADRACE_PRINT_PARTS") != nullptr) std::ofstream(path) << page;
  const std::vector<std::byte> bytes = read_whole_file(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), page)
      << "run this test with HEADRACE_PRINT_PARTS=1 and look at what changed";
}

TEST(PartsPage, LoadersOptionsAreExplained) { rows_of<LoaderOptions>("loader"); }

}  // namespace
}  // namespace headrace
