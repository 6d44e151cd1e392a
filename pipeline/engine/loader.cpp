#include "headrace/pipeline/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/engine/engine.h"
#include "headrace/pipeline/engine/stream_mark.h"

namespace headrace {
namespace {

constexpr std::string_view kStateHeader = "headrace-loader-2 ";
constexpr std::string_view kEarlierHeader = "headrace-loader-1 ";
constexpr std::size_t kDigitsOfHash = 8;

[[noreturn]] void refuse_state(std::string_view text) {
  if (text.starts_with(kEarlierHeader)) {
    throw ConfigError("the loader state is of an earlier version, whose streams had other fingerprints",
                      "start again, or continue with the version that saved it");
  }
  throw ConfigError(fmt::format("'{}' is no loader state", text.substr(0, 80)),
                    "expected one line: headrace-loader-2 <fingerprint> <sequence> <seed> <stages>");
}

// One digit holds four batches.
constexpr std::uint64_t kBatchesOfDigit = 4;
constexpr std::string_view kDigits = "0123456789abcdef";

std::string written_ahead(const LoaderState& state) {
  std::string digits;
  for (const std::uint64_t batch : state.ahead) {
    const std::uint64_t place = batch - state.sequence - 1;
    digits.resize(static_cast<std::size_t>(place / kBatchesOfDigit) + 1, '0');
    digits.back() = kDigits[kDigits.find(digits.back()) | (std::size_t{1} << place % kBatchesOfDigit)];
  }
  return digits;
}

// The last digit is not 0, so that each state has one text.
std::vector<std::uint64_t> parsed_ahead(std::string_view digits, std::uint64_t sequence, std::string_view text) {
  const bool fits = digits.size() * kBatchesOfDigit <= kMaxAhead && sequence <= ~std::uint64_t{0} - kMaxAhead;
  if (!fits || digits.empty() || digits.back() == '0') refuse_state(text);
  std::vector<std::uint64_t> ahead;
  for (std::uint64_t place = 0; place < digits.size() * kBatchesOfDigit; ++place) {
    const std::size_t digit = kDigits.find(digits[static_cast<std::size_t>(place / kBatchesOfDigit)]);
    if (digit == std::string_view::npos) refuse_state(text);
    if ((digit >> place % kBatchesOfDigit & 1) != 0) ahead.push_back(sequence + 1 + place);
  }
  return ahead;
}

// The whole of `digits` as a number.
std::uint64_t number(std::string_view digits, int base, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) refuse_state(text);
  return value;
}

std::string written_stages(const std::vector<std::uint32_t>& stages) {
  std::string digits;
  for (const std::uint32_t hash : stages) digits += fmt::format("{:08x}", hash);
  return digits.empty() ? "-" : digits;
}

std::vector<std::uint32_t> parsed_stages(std::string_view digits, std::string_view text) {
  std::vector<std::uint32_t> stages;
  if (digits == "-") return stages;
  if (digits.empty() || digits.size() % kDigitsOfHash != 0) refuse_state(text);
  for (; !digits.empty(); digits.remove_prefix(kDigitsOfHash)) {
    stages.push_back(static_cast<std::uint32_t>(number(digits.substr(0, kDigitsOfHash), 16, text)));
  }
  return stages;
}

}  // namespace

// Owns the running engine, which its threads share.
class Loader::Running {
 public:
  Running(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options)
      : dataset_(dataset), devices_(devices) {
    const ScanPoll poll(options.while_waiting);
    engine_ = std::make_shared<Engine>(dataset, devices, options);
    engine_->start();
  }
  ~Running() {
    if (engine_->is_forked()) {
      // The threads and what their locks guard belong to the parent; the copy in this process is left alone.
      new std::shared_ptr<Engine>(std::move(engine_));
      return;
    }
    engine_->shut_down();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Engine& operator*() const noexcept { return *engine_; }
  const Dataset& dataset() const noexcept { return dataset_; }
  DeviceGroup& devices() const noexcept { return devices_; }

 private:
  Dataset dataset_;
  DeviceGroup& devices_;
  std::shared_ptr<Engine> engine_;
};

Loader::Loader(const Dataset& dataset, DeviceGroup& devices, LoaderOptions options)
    : running_(std::make_unique<Running>(dataset, devices, options)) {}

Loader::~Loader() = default;

std::optional<Batch> Loader::next(int replica, std::optional<std::uint64_t> epoch) {
  return (**running_).next(replica, epoch);
}

std::int64_t Loader::local_rows() const noexcept { return (**running_).run().layout.local_rows; }

std::uint64_t Loader::steps_per_epoch() const noexcept { return (**running_).run().schedule.steps_per_epoch(); }

bool Loader::knows_steps() const noexcept { return (**running_).run().schedule.is_known(); }

const Fields& Loader::fields() const noexcept { return (**running_).run().plan.fields; }

const Dataset& Loader::dataset() const noexcept { return running_->dataset(); }

DeviceGroup& Loader::devices() const noexcept { return running_->devices(); }

World Loader::world() const noexcept {
  const BatchLayout& layout = (**running_).run().layout;
  return {.total = layout.world_replicas, .first = layout.first_replica};
}

int Loader::burst() const noexcept { return (**running_).burst(); }

bool Loader::in_order() const noexcept { return (**running_).run().options.in_order; }

int Loader::threads() const noexcept { return (**running_).tuning().lanes(); }

bool Loader::tuned() const noexcept { return (**running_).tuning().settled(); }

std::vector<Choice> Loader::choices() const { return (**running_).choices(); }

LoaderState Loader::state() const { return (**running_).state(); }

LoaderStats Loader::stats() const { return (**running_).stats(); }

std::string Loader::trace_json() const { return (**running_).trace_json(); }

void Loader::stop() noexcept { (**running_).stop(); }

std::string LoaderState::serialize() const {
  check_ahead(*this);
  std::string text =
      fmt::format("{}{} {} {} {}", kStateHeader, to_hex(fingerprint), sequence, seed, written_stages(stages));
  const bool of_stream = records > 0 || !mark.empty();
  if (!ahead.empty() || of_stream) text += " " + (ahead.empty() ? "-" : written_ahead(*this));
  if (of_stream) text += fmt::format(" {} {}", records, mark.empty() ? "-" : mark);
  return text;
}

LoaderState LoaderState::parse(std::string_view text) {
  std::string_view rest = text;
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  if (!rest.starts_with(kStateHeader)) refuse_state(text);
  rest.remove_prefix(kStateHeader.size());
  std::vector<std::string_view> words;
  for (std::size_t space = rest.find(' '); space != std::string_view::npos; space = rest.find(' ')) {
    words.push_back(rest.substr(0, space));
    rest.remove_prefix(space + 1);
  }
  words.push_back(rest);
  const bool of_stream = words.size() == 7;
  if (words.size() < 4 || (words.size() > 5 && !of_stream) || words[0].size() != 16) refuse_state(text);
  LoaderState state{.fingerprint = number(words[0], 16, text),
                    .sequence = number(words[1], 10, text),
                    .seed = number(words[2], 10, text),
                    .stages = parsed_stages(words[3], text)};
  if (words.size() > 4 && !(of_stream && words[4] == "-")) {
    state.ahead = parsed_ahead(words[4], state.sequence, text);
  }
  if (!of_stream) return state;
  state.records = number(words[5], 10, text);
  if (words[6] != "-") state.mark = words[6];
  const bool is_empty = state.records == 0 && state.mark.empty();
  if (is_empty || state.records > kUnknownRecords || state.mark.size() > kMaxMark) refuse_state(text);
  return state;
}

}  // namespace headrace
