// A stage of a plan as written. Each is a class in one file of plan/stages/, which holds everything that is known
// of it: its check, index, JSON and part in an evaluation. Whoever works on a plan asks its stages and knows none.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class EvaluationStages;
class FilterFailures;
class PlanBuilder;
class Stage;
using StagePtr = std::shared_ptr<const Stage>;

// The effect of a stage on positions, of records or, after batch(), of batches.
struct StageTraits {
  bool shuffles = false;     // the record at a position depends on the seed or the epoch
  bool orders = false;       // every position comes as often as any other, in some order
  bool scatters = false;     // neighbours come from anywhere among the positions
  std::uint64_t window = 0;  // of a shuffle: consecutive positions that it shuffles; 0: of others, too
  bool by_number = false;    // chooses or orders positions by their numbers alone
  bool keeps_order = false;  // later positions come from later ones
  bool streams = false;      // works without knowing how many positions there are
  bool numbers = false;      // positions stay as they are, and are numbered
  bool repeats = false;      // a record may come several times in a pass
  std::uint64_t times = 0;   // of repeat(); 0: it is another stage
  bool batches = false;      // begins batches
  bool processes = false;    // changes samples: decode() or map()
};

// The positions before an index stage.
struct StageInput {
  std::uint64_t positions = 0;
  std::uint64_t seed = 0;    // the loader's
  std::uint64_t moving = 0;  // stages before it that move positions: it keeps two shuffles with one seed apart

  // Returns the key of a stage's random numbers; `own` is its seed.
  std::uint64_t key(std::uint64_t own = 0) const { return mix_seed(mix_seed(seed, own), moving); }
};

// The positions after an index stage.
struct Indexed {
  std::uint64_t positions = 0;
  IndexStagePtr stage = {};  // null: the first positions, as they are
};

// Immutable.
class Stage : public std::enable_shared_from_this<Stage> {
 public:
  virtual ~Stage() = default;

  // Returns the stage as explain() shows it and as fingerprints include it: "shuffle(seed=7)".
  virtual std::string describe() const = 0;
  // Adds the stage to the plan. Throws ConfigError if it cannot stand there; Error(kInternal) if only the planner
  // makes such stages.
  virtual void plan_into(PlanBuilder& plan) const;
  // Returns {"shuffle": {...}}; `path` is the place of the object. Throws ConfigError if it is code that `parts`
  // do not hold.
  virtual nlohmann::ordered_json to_json(const PlanParts& parts, const std::string& path) const;
  // Adds what it does to other data that the trained model is evaluated with: by default nothing.
  virtual void evaluate(EvaluationStages& /*stages*/) const {}
  // Returns the stage as it follows `before`, of which it may know the records.
  virtual StagePtr after(const PlanPtr& /*before*/) const { return shared_from_this(); }
  // Returns decode() with the size of the source's first image, if it has none. Null: another stage, or no such
  // image. May read the source.
  virtual StagePtr sized(const Source& /*source*/) const { return nullptr; }

  virtual StageTraits traits() const { return {}; }

  // Returns the index of an index stage's positions. May run a filter, which reads the source.
  virtual Indexed index(const StageInput& before) const;
  // Adds the records that it could not judge, by their number in the plan's source.
  virtual void add_failures(FilterFailures& /*all*/) const {}
  // Returns what explain() says of its costs.
  virtual std::string cost() const { return {}; }
};

struct Combination;
struct Windowed;
struct Zipped;

// The origin of a plan's records.
struct PlanSource {
  SourcePtr source;  // of processed parts: its fields are those of samples, its bytes the parts'
  std::shared_ptr<const Combination> combination = {};  // whose parts' records `source` holds; null: of none
  // The source's origin, for writing the plan:
  std::shared_ptr<const Zipped> zipped = {};      // by zip(); else null
  std::shared_ptr<const Windowed> windowed = {};  // by window(); else null
  SourcePtr unpadded = {};                        // the source that padded_batch() pads; else null
  bool processed = false;                         // whether its parts are decoded, mapped or cached before
};

// A dataset's plan: a chain of stages, newest first, shared by the datasets derived from it. Immutable.
struct PlanNode {
  PlanPtr before;                                 // null: the first node
  StagePtr stage;                                 // null: the first node
  std::shared_ptr<const PlanSource> source = {};  // of the first node; else null
};

PlanPtr begin_plan(PlanSource source);
PlanPtr add_stage(PlanPtr before, StagePtr stage);
const PlanSource& source_of(const PlanPtr& plan);
// Returns the stages in the order written.
std::vector<StagePtr> stages_of(const PlanPtr& plan);
// Returns the plan with the same stages on another source.
PlanPtr with_source(const PlanPtr& plan, PlanSource source);

// Returns "source(cifar10, 50000 records)".
std::string describe(const Source& source);
// Throws ConfigError if the source is a stream: `what` takes records by their numbers, or needs their count.
void refuse_stream(const Source& source, const std::string& what);

// Returns whether the record at a position after any of the stages depends on the seed or the epoch.
bool is_shuffled(const std::vector<StagePtr>& stages);
// Returns whether a record may have another position after the stages in another pass, or several in one.
bool renumbers(const std::vector<StagePtr>& stages);
// Returns how many of the index stages remain before `call`, which sees the same records in every epoch: a
// trailing run of stages that order positions, and with `numbers` of those that number them, commutes with it and
// moves after it. Throws ConfigError if the rest picks other records every epoch.
std::size_t stages_before_order(const std::vector<StagePtr>& index_stages, bool numbers, const char* call,
                                const char* hint);

// Return the stages of decode() and unbatch(), which evaluation makes, too.
StagePtr decode_stage(const DecodeOptions& options);
StagePtr unbatch_stage();

}  // namespace headrace
