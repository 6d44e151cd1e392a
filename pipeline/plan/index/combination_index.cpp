#include "headrace/pipeline/plan/index/combination_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <variant>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/interleaving.h"
#include "headrace/pipeline/plan/index/mixing.h"

namespace headrace {
namespace {

// Concatenates streams.
class Concatenation {
 public:
  explicit Concatenation(const std::vector<std::uint64_t>& sizes) {
    std::uint64_t end = 0;
    for (std::uint64_t size : sizes) ends_.push_back(end += size);
  }

  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  // O(log of the parts). REQUIRES: `position` < size().
  Share locate(std::uint64_t position) const noexcept {
    const auto part =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
    return {.part = part, .position = part == 0 ? position : position - ends_[part - 1]};
  }

 private:
  std::vector<std::uint64_t> ends_;
};

// Groups positions; each group is one record of several rows.
class Unbatching {
 public:
  // REQUIRES: `rows` > 0, `size` is a multiple of `rows`.
  Unbatching(std::uint64_t rows, std::uint64_t size) : rows_(rows), size_(size) {}

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t rows() const noexcept { return rows_; }
  // Returns the place of the record that holds the row. REQUIRES: `position` < size().
  Share locate(std::uint64_t position) const noexcept { return {.part = 0, .position = position / rows_}; }

 private:
  std::uint64_t rows_, size_;
};

class CombinationIndex final : public IndexStage {
 public:
  // `seed` is the loader's. Throws ConfigError if a mix cannot be made.
  CombinationIndex(const Combination& combination, std::uint64_t seed);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  struct Part {
    IndexMap map;
    std::uint64_t first_record = 0;
    std::uint64_t rounds = 1;  // passes over the part within an epoch
  };
  struct Memory final : IndexMemory {
    void write_numbers(std::uint64_t* numbers) const override { cursors[last].write_numbers(numbers); }

    std::vector<IndexCursor> cursors;  // one per part
    std::size_t last = 0;              // the part of the position that was located last
    MixedStretch stretch;
  };

  void make_mix(const MixOptions& options, const std::vector<std::uint64_t>& sizes, std::uint64_t seed);
  Share share_at(const Located& at, Memory& memory) const;

  std::vector<Part> parts_;
  std::variant<Concatenation, Interleaving, Mixing, Unbatching> how_;
};

// How many positions of an epoch are each part's.
std::vector<std::uint64_t> mixed_counts(const MixOptions& options, const std::vector<std::uint64_t>& sizes) {
  if (options.weights.empty()) return sizes;
  const double sum = std::accumulate(options.weights.begin(), options.weights.end(), 0.0);
  const auto share = [&](std::size_t i) { return options.weights[i] / sum; };
  double length = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double wanted = static_cast<double>(sizes[i]) / share(i);
    const bool first_ends = options.end == MixEnd::kFirstEnds;
    length = i == 0 ? wanted : first_ends ? std::min(length, wanted) : std::max(length, wanted);
  }
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double exact = length * share(i);
    if (exact > 0x1p47) {
      throw ConfigError(fmt::format("mix(): an epoch would have {:.0f} records of dataset {}", exact, i),
                        "raise the weight of the small datasets, or let the first end");
    }
    const auto rounded = static_cast<std::uint64_t>(std::llround(exact));
    // The dataset that ends is given whole, whatever the rounding.
    if (options.end == MixEnd::kFirstEnds) {
      counts.push_back(std::min(rounded, sizes[i]));
    } else {
      counts.push_back(sizes[i] == 0 ? 0 : std::max(rounded, sizes[i]));
    }
  }
  return counts;
}

CombinationIndex::CombinationIndex(const Combination& combination, std::uint64_t seed) : how_(Unbatching(1, 0)) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t all = 0;
  for (const CombinedPart& part : combination.parts) {
    // Each part has its own seed: equal shuffles of equal parts must differ.
    const std::uint64_t part_seed = mix_seed(seed, 0xC0B1 + parts_.size());
    parts_.push_back({.map = IndexMap(part.records, part.stages, part_seed), .first_record = part.first_record});
    sizes.push_back(parts_.back().map.size());
    const auto sum = checked_sum({all, sizes.back()});
    if (!sum) throw ConfigError("the combined datasets have more records than can be counted", "repeat them less");
    all = *sum;
  }
  if (combination.of_batches()) {  // their order is that of batch numbers
    how_ = Concatenation(sizes);
  } else if (const auto* interleave = std::get_if<InterleaveOptions>(&combination.how)) {
    how_ = Interleaving(sizes, interleave->block);
  } else if (const auto* mix = std::get_if<MixOptions>(&combination.how)) {
    make_mix(*mix, sizes, seed);
  } else if (const auto* unbatch = std::get_if<UnbatchRows>(&combination.how)) {
    const auto rows = checked_product({sizes.front(), unbatch->rows});
    if (!rows) throw ConfigError("unbatch(): more records than can be counted", "repeat after it");
    how_ = Unbatching(unbatch->rows, *rows);
  } else {
    how_ = Concatenation(sizes);
  }
}

void CombinationIndex::make_mix(const MixOptions& options, const std::vector<std::uint64_t>& sizes,
                                std::uint64_t seed) {
  std::vector<std::uint64_t> counts = mixed_counts(options, sizes);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > sizes[i]) parts_[i].rounds = (counts[i] - 1) / sizes[i] + 1;
  }
  how_ = Mixing(std::move(counts), mix_seed(mix_seed(seed, options.seed), 0x313));
}

std::uint64_t CombinationIndex::size() const noexcept {
  return std::visit([](const auto& how) { return how.size(); }, how_);
}

std::unique_ptr<IndexMemory> CombinationIndex::create_memory() const {
  auto memory = std::make_unique<Memory>();
  for (const Part& part : parts_) memory->cursors.emplace_back(part.map);
  return memory;
}

Share CombinationIndex::share_at(const Located& at, Memory& memory) const {
  if (const auto* mixing = std::get_if<Mixing>(&how_)) return mixing->locate(at.pass, at.record, memory.stretch);
  if (const auto* unbatching = std::get_if<Unbatching>(&how_)) return unbatching->locate(at.record);
  if (const auto* interleaving = std::get_if<Interleaving>(&how_)) return interleaving->locate(at.record);
  return std::get<Concatenation>(how_).locate(at.record);
}

Located CombinationIndex::locate(const Located& at, IndexMemory* memory) const {
  auto& walker = static_cast<Memory&>(*memory);
  const Share share = share_at(at, walker);
  const Part& part = parts_[share.part];
  walker.last = share.part;
  const std::uint64_t round = part.rounds == 1 ? 0 : share.position / part.map.size();
  Located located =
      walker.cursors[share.part].locate(at.pass * part.rounds + round, share.position - round * part.map.size());
  if (const auto* unbatching = std::get_if<Unbatching>(&how_)) {
    located.record = located.record * unbatching->rows() + at.record % unbatching->rows();
  }
  located.record += part.first_record;
  return located;
}

struct DescribeHow {
  std::string operator()(const InSequence&) const { return "concatenate"; }
  std::string operator()(const InterleaveOptions& options) const { return described("interleave", options); }
  std::string operator()(const MixOptions& options) const { return described("mix", options); }
  std::string operator()(const UnbatchRows& unbatch) const { return fmt::format("unbatch of {}", unbatch.rows); }
};

std::string describe_part(const CombinedPart& part) {
  std::string text = fmt::format("{} records", part.records);
  for (const StagePtr& stage : part.stages) text += " | " + stage->describe();
  if (!part.batches) return text;
  if (part.batches->combined == nullptr) text += " | " + described("batch", part.batches->options);
  for (const StagePtr& stage : part.batches->stages) text += " | " + stage->describe();
  return text;
}

// Adds a part's failures; each of its records has become `rows` of the combination's.
void add_failures_of(const CombinedPart& part, std::uint64_t rows, FilterFailures& all) {
  const FilterFailures failures = FilterFailures::of(part.stages);
  for (const auto& [record, failure] : failures.by_record()) {
    for (std::uint64_t row = 0; row < rows; ++row) all.add(part.first_record + record * rows + row, failure);
  }
}

}  // namespace

std::string CombineStage::describe() const {
  std::string text = combination_->of_batches() ? "whole batches, " : "";
  text += std::visit(DescribeHow(), combination_->how) + ":";
  for (const CombinedPart& part : combination_->parts) text += fmt::format(" [{}]", describe_part(part));
  return text;
}

StageTraits CombineStage::traits() const {
  StageTraits traits{.shuffles = std::holds_alternative<MixOptions>(combination_->how)};
  for (const CombinedPart& part : combination_->parts) {
    traits.shuffles |= is_shuffled(part.stages) || (part.batches && is_shuffled(part.batches->stages));
    traits.repeats |= renumbers(part.stages) || (part.batches && renumbers(part.batches->stages));
  }
  return traits;
}

Indexed CombineStage::index(const StageInput& before) const {
  HEADRACE_CHECK(before.moving == 0, "datasets are combined before anything else");
  auto stage = std::make_shared<const CombinationIndex>(*combination_, before.seed);
  return {.positions = stage->size(), .stage = stage};
}

void CombineStage::add_failures(FilterFailures& all) const {
  const auto* unbatch = std::get_if<UnbatchRows>(&combination_->how);
  for (const CombinedPart& part : combination_->parts) {
    add_failures_of(part, unbatch != nullptr ? unbatch->rows : 1, all);
  }
}

}  // namespace headrace
