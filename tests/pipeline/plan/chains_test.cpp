// Random chains of stages, in any order, compared with a naive interpreter that holds each pass as a list.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace {
namespace {

constexpr std::uint64_t kSeed = 4, kBatchKey = 0xBA7C;
constexpr std::uint64_t kEpochs = 2;

using Numbers = std::vector<std::int64_t>;
using Elements = std::vector<Numbers>;  // batches; before batch(), records: lists of one number
using Pass = std::function<Elements(std::uint64_t pass)>;

enum class Kind {
  kShuffle,
  kWindow,
  kRepeat,
  kTake,
  kSkip,
  kSelect,
  kShard,
  kWithout,
  kMap,
  kCache,
  kNumber,
  kBatch,
  kUnbatch
};
struct ChainStep {
  Kind kind = Kind::kMap;
  std::uint64_t count = 0;
  bool flag = false;  // shuffle: each epoch anew; batch: drops the remainder
};
using Steps = std::span<const ChainStep>;

bool is_shuffle(const ChainStep& step) { return step.kind == Kind::kShuffle || step.kind == Kind::kWindow; }
bool has_positions(const ChainStep& step) {
  return step.kind != Kind::kMap && step.kind != Kind::kCache && step.kind != Kind::kNumber;
}

Operations triple_and_add() {
  return user_map({.name = "triple and add",
                   .field = "value",
                   .output = {.dtype = DType::kI64, .shape = {}},
                   .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                     std::int64_t value = 0;
                     std::memcpy(&value, in.data(), sizeof value);
                     value = 3 * value + 1;
                     std::memcpy(out.data(), &value, sizeof value);
                   }});
}

// What a select() chooses of so many elements: some twice, in no order.
std::vector<std::uint64_t> chosen_of(std::uint64_t elements, std::uint64_t count) {
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; elements > 0 && i < count; ++i) chosen.push_back((5 * i * i + 3) % elements);
  return chosen;
}

// The elements so far: batches, or records. 0 where the chain is refused anyway.
std::uint64_t count_elements(const Dataset& data) {
  for (const auto count : {&Dataset::steps_per_epoch, &Dataset::size}) {
    try {
      return (data.*count)();
    } catch (const ConfigError&) {
    }
  }
  return 0;
}

Dataset with_step(const Dataset& data, const ChainStep& step) {
  switch (step.kind) {
    case Kind::kShuffle: return data.shuffle({.seed = step.count, .reshuffle_each_epoch = step.flag});
    case Kind::kWindow: return data.shuffle_window({.size = step.count});
    case Kind::kRepeat: return data.repeat(static_cast<std::int64_t>(step.count));
    case Kind::kTake: return data.take(step.count);
    case Kind::kSkip: return data.skip(step.count);
    case Kind::kSelect: return data.select(chosen_of(count_elements(data), step.count));
    case Kind::kShard: return data.shard(step.count, 1);
    case Kind::kWithout: return data.without_shard(step.count, 0);
    case Kind::kMap: return data.map(triple_and_add());
    case Kind::kCache: return data.cache(memory());
    case Kind::kNumber: return data.enumerate({.field = "number"});
    case Kind::kBatch:
      return data.batch({.global_batch = static_cast<std::int64_t>(step.count), .drop_remainder = step.flag});
    case Kind::kUnbatch: return data.unbatch();
  }
  return data;
}

Elements keep_if(const Elements& all, const std::function<bool(std::uint64_t)>& keeps) {
  Elements kept;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    if (keeps(i)) kept.push_back(all[i]);
  }
  return kept;
}

Elements shuffled(const Elements& all, std::uint64_t window,
                  const std::function<std::uint64_t(std::uint64_t)>& key) {
  Elements made;
  for (std::uint64_t first = 0; first < all.size(); first += window) {
    const Permutation order(std::min<std::uint64_t>(window, all.size() - first), key(first / window));
    for (std::uint64_t i = 0; i < order.size(); ++i) made.push_back(all[first + order(i)]);
  }
  return made;
}

Elements unbatched(const Elements& batches) {
  Elements records;
  for (const Numbers& batch : batches) {
    for (const std::int64_t value : batch) records.push_back({value});
  }
  return records;
}

Elements batched(const Elements& records, const ChainStep& batch) {
  Elements batches;
  for (const Numbers& record : records) {
    if (batches.empty() || batches.back().size() == batch.count) batches.emplace_back();
    batches.back().push_back(record.front());
  }
  if (batch.flag && !batches.empty() && batches.back().size() < batch.count) batches.pop_back();
  return batches;
}

// Interprets the stages of one level, records or batches. A shuffle's key has its place among those stages.
class Level {
 public:
  Level(Pass before, std::uint64_t seed) : pass_(std::move(before)), seed_(seed) {}

  const Pass& pass() const { return pass_; }
  std::uint64_t key(std::uint64_t own) const { return mix_seed(mix_seed(seed_, own), place_); }
  void set(Pass pass) {
    pass_ = std::move(pass);
    ++place_;
  }
  void add(const ChainStep& step) {
    const std::uint64_t count = step.count;
    const Pass before = pass_;
    const auto choose = [&](std::function<bool(std::uint64_t)> keeps) {
      set([before, keeps = std::move(keeps)](std::uint64_t pass) { return keep_if(before(pass), keeps); });
    };
    switch (step.kind) {
      case Kind::kShuffle:
        return set([before, key = key(count), anew = step.flag](std::uint64_t pass) {
          const Elements all = before(pass);
          return shuffled(all, std::max<std::uint64_t>(1, all.size()),
                          [&](std::uint64_t) { return mix_seed(key, anew ? pass : 0); });
        });
      case Kind::kWindow:
        return set([before, key = key(0), count](std::uint64_t pass) {
          return shuffled(before(pass), count,
                          [&](std::uint64_t window) { return mix_seed(mix_seed(key, pass), window); });
        });
      case Kind::kRepeat:
        return set([before, count](std::uint64_t pass) {
          Elements all;
          for (std::uint64_t i = 0; i < count; ++i) {
            for (const Numbers& element : before(pass * count + i)) all.push_back(element);
          }
          return all;
        });
      case Kind::kTake:
        choose([count](std::uint64_t i) { return i < count; });
        --place_;  // take() is no function of positions
        return;
      case Kind::kSkip: return choose([count](std::uint64_t i) { return i >= count; });
      case Kind::kSelect:
        return set([before, count](std::uint64_t pass) {
          const Elements all = before(pass);
          Elements chosen;
          for (const std::uint64_t i : chosen_of(all.size(), count)) chosen.push_back(all[i]);
          return chosen;
        });
      case Kind::kShard: return choose([count](std::uint64_t i) { return i % count == 1; });
      case Kind::kWithout: return choose([count](std::uint64_t i) { return i % count != 0; });
      default: return;
    }
  }

 private:
  Pass pass_;
  std::uint64_t seed_, place_ = 0;
};

bool chooses_after_shuffle(Steps steps) {
  const auto first = std::ranges::find_if(steps, is_shuffle);
  return std::any_of(first, steps.end(),
                     [](const ChainStep& step) { return !is_shuffle(step) && step.kind != Kind::kRepeat; });
}

class Interpreter {
 public:
  explicit Interpreter(std::uint64_t records)
      : records_(
            [records](std::uint64_t) {
              Elements all;
              for (std::uint64_t i = 0; i < records; ++i) all.push_back({static_cast<std::int64_t>(i)});
              return all;
            },
            kSeed) {}

  // Whether an epoch's length would change with the shuffle.
  bool refuses() const { return refuses_; }

  Pass run(Steps steps) {
    std::vector<ChainStep> left;
    std::ranges::copy_if(steps, std::back_inserter(left), has_positions);
    std::size_t i = 0;
    for (; i < left.size() && left[i].kind != Kind::kBatch; ++i) records_.add(left[i]);
    if (i == left.size()) return records_.pass();
    const auto end = std::ranges::find(left.begin() + static_cast<std::ptrdiff_t>(i), left.end(), Kind::kUnbatch,
                                       &ChainStep::kind);
    const Steps on_batches = std::span(left).subspan(i + 1, static_cast<std::size_t>(end - left.begin()) - i - 1);
    if (end == left.end()) return batches(left[i], on_batches, mix_seed(kSeed, kBatchKey)).pass();
    order(left[i], on_batches);
    return run(std::span(left).subspan(static_cast<std::size_t>(end - left.begin()) + 1));
  }

 private:
  Level batches(const ChainStep& batch, Steps steps, std::uint64_t seed) const {
    Level level([before = records_.pass(), batch](std::uint64_t pass) { return batched(before(pass), batch); },
                seed);
    for (const ChainStep& step : steps) level.add(step);
    return level;
  }

  // Trailing repeats are of records.
  void order(const ChainStep& batch, Steps steps) {
    std::size_t kept = steps.size();
    while (kept > 0 && steps[kept - 1].kind == Kind::kRepeat) --kept;
    const Steps inner = steps.first(kept);
    if (batch.flag || kept > 0) {
      const bool uneven = !batch.flag && records_.pass()(0).size() % batch.count != 0;
      refuses_ = refuses_ || (uneven && chooses_after_shuffle(inner));
      const Level level = batches(batch, inner, mix_seed(records_.key(0), kBatchKey));
      records_.set([before = level.pass()](std::uint64_t pass) { return unbatched(before(pass)); });
    }
    for (const ChainStep& repeat : steps.subspan(kept)) records_.add(repeat);
  }

  Level records_;
  bool refuses_ = false;
};

// Drawn from its number.
std::vector<ChainStep> random_chain(std::uint64_t number, Philox& random) {
  std::vector<ChainStep> steps;
  bool batched = false, numbered = false;
  const auto add_batch = [&] {
    steps.push_back({.kind = batched ? Kind::kUnbatch : Kind::kBatch,
                     .count = 1 + random.below(7),
                     .flag = random.below(3) == 0});
    batched = !batched;
  };
  for (std::uint32_t left = 2 + random.below(6 + static_cast<std::uint32_t>(number % 5)); left > 0; --left) {
    switch (random.below(14)) {
      case 0:
        steps.push_back({.kind = Kind::kShuffle, .count = random.below(3), .flag = random.below(2) == 0});
        break;
      case 1: steps.push_back({.kind = Kind::kWindow, .count = 1 + random.below(6)}); break;
      case 2: steps.push_back({.kind = Kind::kRepeat, .count = 1 + random.below(3)}); break;
      case 3: steps.push_back({.kind = Kind::kTake, .count = random.below(batched ? 5 : 30)}); break;
      case 4: steps.push_back({.kind = Kind::kSkip, .count = random.below(3)}); break;
      case 5: steps.push_back({.kind = Kind::kShard, .count = 2}); break;
      case 6: steps.push_back({.kind = Kind::kWithout, .count = 2 + random.below(3)}); break;
      case 7: steps.push_back({.kind = Kind::kMap}); break;
      case 8:
        if (!numbered) steps.push_back({.kind = Kind::kCache});  // numbers may not be kept
        break;
      case 9:  // changes the order of nothing
        if (!batched && !numbered) steps.push_back({.kind = Kind::kNumber});
        numbered = numbered || !batched;
        break;
      case 10: steps.push_back({.kind = Kind::kSelect, .count = random.below(batched ? 5 : 30)}); break;
      default: add_batch(); break;
    }
  }
  if (!batched) add_batch();
  return steps;
}

struct Expected {
  Elements batches;
  std::vector<std::uint64_t> epochs;  // of each batch
};

Expected expected_of(const Pass& naive, Steps steps) {
  Expected expected;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (Numbers batch : naive(epoch)) {
      for (std::int64_t& value : batch) {
        for (const ChainStep& step : steps) value = step.kind == Kind::kMap ? 3 * value + 1 : value;
      }
      expected.batches.push_back(std::move(batch));
      expected.epochs.push_back(epoch);
    }
  }
  return expected;
}

// The global batches from a position on, joined from parts of the world of so many replicas each.
Elements batches_of(const Dataset& data, int world, int local, std::uint64_t fingerprint, std::uint64_t from) {
  Elements all;
  for (int first = 0; first < world; first += local) {
    DeviceGroup devices = test::cpu_replicas(local);
    LoaderOptions options{
        .seed = kSeed, .epochs = kEpochs, .world = {.total = world, .first = first}, .threads = 1};
    if (from > 0) options.start = LoaderState{.fingerprint = fingerprint, .sequence = from};
    Loader loader(data, devices, options);
    for (std::size_t step = 0;; ++step) {
      for (int r = 0; r < local; ++r) {
        const auto batch = loader.next(r);
        if (!batch) break;
        const auto values = test::download_examples<std::int64_t>(devices[r], *batch, "value");
        if (all.size() <= step) all.resize(step + 1);
        all[step].insert(all[step].end(), values.begin(), values.end());
      }
      if (all.size() <= step) break;
      if (first > 0 && step + 1 == all.size()) break;
    }
  }
  return all;
}

std::uint64_t fingerprint_of(const Dataset& data) {
  DeviceGroup devices = test::cpu_replicas(1);
  return Loader(data, devices, {.seed = kSeed, .epochs = kEpochs, .threads = 1}).state().fingerprint;
}

void expect_chain(const Dataset& data, const Expected& expected, std::uint64_t number) {
  const auto& all = expected.batches;
  ASSERT_EQ(data.steps_per_epoch() * kEpochs, all.size());
  ASSERT_EQ(
      Dataset::from_json(data.to_json({.sources = {{"numbers", data.source()}}, .operations = {triple_and_add()}}),
                         {.parts = {.sources = {{"numbers", data.source()}}, .operations = {triple_and_add()}}})
          .fingerprint(),
      data.fingerprint());
  for (const int world : {1, 2, 4}) ASSERT_EQ(batches_of(data, world, world, 0, 0), all) << world << " replicas";
  if (number % 4 == 0) {
    ASSERT_EQ(batches_of(data, 4, 2, 0, 0), all) << "two parts of a world of 4";
  }
  const std::uint64_t fingerprint = fingerprint_of(data);
  const std::size_t stride = number % 8 == 0 ? 1 : 5;
  for (std::size_t from = 1 + number % stride; from <= all.size(); from += stride) {
    const Elements rest(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
    ASSERT_EQ(batches_of(data, 2, 2, fingerprint, from), rest) << "from step " << from;
  }
}

TEST(Chains, OfStagesInAnyOrderGiveWhatTheyGiveOneAfterAnother) {
  std::uint64_t refused = 0, nonempty = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    Philox random({.seed = 23, .record = number});
    const std::uint64_t records = 1 + random.below(40);
    const std::vector<ChainStep> steps = random_chain(number, random);
    Dataset data = Dataset::from(test::numbers(records));
    for (const ChainStep& step : steps) data = with_step(data, step);
    SCOPED_TRACE(std::to_string(number) + ": " + data.explain());
    Interpreter interpreter(records);
    const Pass naive = interpreter.run(steps);
    if (interpreter.refuses()) {
      EXPECT_THROW(data.size(), ConfigError);
      ++refused;
      continue;
    }
    const Expected expected = expected_of(naive, steps);
    nonempty += expected.batches.empty() ? 0 : 1;
    expect_chain(data, expected, number);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(refused, 30U);
  EXPECT_GT(nonempty, 150U);
}

}  // namespace
}  // namespace headrace
