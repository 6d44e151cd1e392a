// The samples of a combination whose datasets were decoded, mapped or cached before they were combined.
#pragma once

#include <memory>
#include <vector>

#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/plan/cached_chains.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// Const except for the parts' caches; shared by all threads. Random numbers are those of the combination's record.
class PartSamples {
 public:
  // REQUIRES: `plan` has parts.
  explicit PartSamples(const StreamPlan& plan);

  // Returns the combined sample, in the context's scratch. `made`: as for CachedChains::run().
  SampleView run(const RecordView& record, const StepContext& context, std::size_t& made) const;

  bool is_slow() const noexcept;
  void add_stages(std::vector<StageName>& stages);
  void name_spans(Trace& trace);

 private:
  struct Part {
    explicit Part(const ProcessedPart& of);

    ProcessedPart planned;
    LabelCheck labels;
    std::unique_ptr<PartSamples> inner;  // if its source is itself such a combination
    CachedChains chains;
  };

  // Returns the sample of a part. `fields`: of this part, from its first on; `number`: of its combination's
  // record.
  SampleView run_part(const Part& part, const RecordView& fields, std::uint64_t number, const StepContext& context,
                      std::size_t& made) const;
  SampleView run_numbered(const RecordView& record, std::uint64_t number, const StepContext& context,
                          std::size_t& made) const;

  bool zipped_;
  std::vector<Part> parts_;
};

}  // namespace headrace
